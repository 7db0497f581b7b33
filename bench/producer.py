"""A producer: a process of its own that enqueues jobs that leave stamps."""

import os
import random
import sys
import time
from collections.abc import Iterator

from bench.tasks import stamp

RATE, BEGIN = "BENCH_RATE", "BENCH_BEGIN"
"""Variables, for peers too: jobs per second, and the moment of the first, on the clock that all processes share."""
WARM_UP = 0
"""The argument of the job that opens the connection; its stamp does not count."""


def pauses(jobs: int) -> Iterator[float]:
    """Seconds before each enqueue: random, or at a rate the time until its moment."""
    if RATE not in os.environ:
        chance = random.Random(1)
        yield from (chance.uniform(0.05, 0.15) for _ in range(jobs))
        return
    rate, begin = float(os.environ[RATE]), float(os.environ.get(BEGIN, time.monotonic()))
    for number in range(jobs):
        yield max(0.0, begin + number / rate - time.monotonic())


def main(jobs: int) -> None:
    """Enqueue the jobs one by one."""
    if RATE in os.environ:
        stamp.enqueue(WARM_UP)
    for pause in pauses(jobs):
        time.sleep(pause)
        stamp.enqueue(time.monotonic_ns())


if __name__ == "__main__":
    main(int(sys.argv[1]))
