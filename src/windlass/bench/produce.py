"""The producer of the latency measurement: a process of its own that hands in jobs with pauses, as the peers' do."""

import random
import sys
import time

from windlass.bench.tasks import stamp


def main(jobs: int) -> None:
    """Hand in so many, and wait a little before each."""
    pauses = random.Random(1)
    for _ in range(jobs):
        time.sleep(pauses.uniform(0.05, 0.15))
        stamp.enqueue(time.monotonic_ns())


if __name__ == "__main__":
    main(int(sys.argv[1]))
