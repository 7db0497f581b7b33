"""Dramatiq with its Redis broker: one process, eight threads as by default, acknowledged after the call."""

import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.worker import Worker

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}

broker = RedisBroker(url=os.environ["BENCH_STORE"])
dramatiq.set_broker(broker)
calls: list[float] = []


@dramatiq.actor  # type: ignore[untyped-decorator]
def noop(n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())


@dramatiq.actor  # type: ignore[untyped-decorator]
def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


def fill() -> None:
    """One call for each; it has no bulk verb."""
    began = time.perf_counter()
    for _ in range(JOBS):
        noop.send(**PAYLOAD)
    _say(time.perf_counter() - began)


def drain() -> None:
    """From the first start until no message is unacknowledged."""
    worker = Worker(broker, worker_threads=8)
    worker.start()
    while len(calls) < JOBS:
        time.sleep(0.01)
    broker.join("default", interval=5)
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


def serve() -> None:
    """An idle worker, until it is killed."""
    Worker(broker, worker_threads=8).start()
    while True:
        time.sleep(3600)


def produce() -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        time.sleep(pauses.uniform(0.05, 0.15))
        stamp.send(time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("dramatiq"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    {"fill": fill, "drain": drain, "serve": serve, "produce": produce}[sys.argv[1]]()
