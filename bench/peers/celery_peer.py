"""Celery on Redis: a pool of eight threads, acknowledged late, no results, neither gossip nor mingling."""

import json
import os
import random
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path

from celery import Celery, chord

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}

app = Celery("bench", broker=os.environ["BENCH_STORE"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=64,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    broker_connection_retry_on_startup=True,
    result_backend=os.environ["BENCH_STORE"] if "group" in sys.argv[1] else None,
)
calls: list[float] = []


@app.task(name="noop")  # type: ignore[untyped-decorator]
def noop(n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())


@app.task(name="stamp")  # type: ignore[untyped-decorator]
def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


@app.task(name="member", ignore_result=False)  # type: ignore[untyped-decorator]
def member(n: int, s: str) -> None:
    """A member of a chord: the chord needs its result."""
    calls.append(time.perf_counter())


@app.task(name="body", ignore_result=False)  # type: ignore[untyped-decorator]
def body() -> None:
    """The callback of a chord."""
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


def group() -> None:
    """One chord; its results are in Redis too."""
    began = time.perf_counter()
    chord([member.s(**PAYLOAD) for _ in range(JOBS)])(body.si())
    _say(time.perf_counter() - began)


def fill() -> None:
    """One call for each; it has no bulk verb."""
    began = time.perf_counter()
    for _ in range(JOBS):
        noop.delay(**PAYLOAD)
    _say(time.perf_counter() - began)


def drain() -> None:
    """From the first start until nothing is unacknowledged."""
    threading.Thread(target=_watch, daemon=True).start()
    serve()


def _watch() -> None:
    with app.connection_for_read() as connection:
        client = connection.default_channel.client
        while len(calls) < JOBS or client.hlen("unacked"):
            time.sleep(0.005 if len(calls) >= JOBS else 0.05)
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


def serve() -> None:
    """A worker, until it is killed."""
    flags = ["--pool", "threads", "--concurrency", "8", "--without-gossip", "--without-mingle", "--loglevel", "ERROR"]
    # Discard its banner: our result must be the last line.
    app.worker_main(["--quiet", "worker", *flags])


def produce() -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        time.sleep(pauses.uniform(0.05, 0.15))
        stamp.delay(time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("celery"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    verbs = {"fill": fill, "drain": drain, "serve": serve, "produce": produce}
    {**verbs, "group": group, "drain_group": serve}[sys.argv[1]]()
