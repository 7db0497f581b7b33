"""SAQ on Redis: uvloop, a concurrency of 30; finished jobs are kept for ten minutes, as by default."""

import asyncio
import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvloop
from saq import Queue, Worker

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}
CONCURRENCY = 30

calls: list[float] = []


async def noop(ctx: Any, *, n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())


async def stamp(ctx: Any, *, sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


async def fill(queue: Queue) -> None:
    """One call for each."""
    began = time.perf_counter()
    for _ in range(JOBS):
        await queue.enqueue("noop", **PAYLOAD)
    _say(time.perf_counter() - began)


async def drain(queue: Queue) -> None:
    """From the first start until no job is queued or active."""
    working = asyncio.ensure_future(Worker(queue, [noop, stamp], concurrency=CONCURRENCY).start())
    while len(calls) < JOBS or await queue.count("incomplete"):
        await asyncio.sleep(0.005 if len(calls) >= JOBS else 0.05)
        if working.done():
            await working
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


async def serve(queue: Queue) -> None:
    """An idle worker, until it is killed."""
    await Worker(queue, [noop, stamp], concurrency=CONCURRENCY).start()


async def produce(queue: Queue) -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        await asyncio.sleep(pauses.uniform(0.05, 0.15))
        await queue.enqueue("stamp", sent=time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("saq"), "jobs": JOBS, "seconds": seconds}))


async def main() -> None:
    """Connect, and do what is wanted."""
    queue = Queue.from_url(os.environ["BENCH_STORE"])
    await queue.connect()
    await {"fill": fill, "drain": drain, "serve": serve, "produce": produce}[sys.argv[1]](queue)
    await queue.disconnect()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
