"""Huey at its defaults, one thread as its worker: RedisHuey with a blocking pop, or SqliteHuey.

SqliteHuey has a write-ahead log and SQLite's own `synchronous=FULL`.
"""

import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from huey import RedisHuey, SqliteHuey

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}

STORE = os.environ.get("BENCH_STORE", "")
ON_REDIS = STORE.startswith("redis")
huey = RedisHuey("bench", url=STORE) if ON_REDIS else SqliteHuey("bench", filename=str(FOLDER / "huey.db"))
calls: list[float] = []
drained = threading.Event()


@huey.task()  # type: ignore[untyped-decorator]
def noop(n: int, s: str) -> None:
    """Nothing; the times of the first and the last call are all that is kept of a drain."""
    calls.append(time.perf_counter())
    if len(calls) == JOBS:
        drained.set()


@huey.task()  # type: ignore[untyped-decorator]
def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


def fill() -> None:
    """One call, on SQLite one commit, for each: Huey has no bulk verb."""
    began = time.perf_counter()
    for _ in range(JOBS):
        noop(**PAYLOAD)
    _say(time.perf_counter() - began)


def drain() -> None:
    """The consumer with its default options, from the first start to the last; a result of None is not kept."""
    huey.create_consumer().start()
    drained.wait()
    _say(calls[-1] - calls[0])
    sys.stdout.flush()
    os._exit(0)


def serve() -> None:
    """An idle consumer with its default options."""
    huey.create_consumer().run()


def pauses() -> Iterator[float]:
    """Seconds before each enqueue: random, or at a rate what is left until its moment."""
    chance, rate = random.Random(1), float(os.environ.get("BENCH_RATE", "0"))
    begin = float(os.environ.get("BENCH_BEGIN", "0"))
    for number in range(JOBS):
        yield max(0.0, begin + number / rate - time.monotonic()) if rate else chance.uniform(0.05, 0.15)


def produce() -> None:
    """Enqueue with pauses, or at a rate after a job that opens the connection."""
    if "BENCH_RATE" in os.environ:
        stamp(0)
    for pause in pauses():
        time.sleep(pause)
        stamp(time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("huey"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    {"fill": fill, "drain": drain, "serve": serve, "produce": produce}[sys.argv[1]]()
