"""A producer: a process of its own that enqueues jobs that leave stamps."""

import random
import sys
import time

from bench.tasks import stamp


def main(jobs: int, rate: float | None) -> None:
    """Enqueue with pauses as the peers' producers make them, or at a steady rate."""
    if rate is None:
        pauses = random.Random(1)
        for _ in range(jobs):
            time.sleep(pauses.uniform(0.05, 0.15))
            stamp.enqueue(time.monotonic_ns())
        return
    began = time.monotonic()
    for number in range(jobs):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        stamp.enqueue(time.monotonic_ns())


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None)
