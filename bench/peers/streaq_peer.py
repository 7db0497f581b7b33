"""streaQ: a concurrency of 64, its defaults otherwise; results are kept for five minutes."""

import asyncio
import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path

from streaq import TaskStatus, Worker

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}
CHUNK = 5000

worker = Worker(redis_url=os.environ["BENCH_STORE"], concurrency=64)
calls: list[float] = []


@worker.task()  # type: ignore[untyped-decorator]
async def noop(n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())


@worker.task()  # type: ignore[untyped-decorator]
async def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


async def fill() -> None:
    """One call for each."""
    async with worker:
        began = time.perf_counter()
        for _ in range(JOBS):
            await noop.enqueue(**PAYLOAD)
        _say(time.perf_counter() - began)


async def bulk() -> None:
    """Its bulk verb, 1,000 to a call."""
    async with worker:
        began = time.perf_counter()
        for start in range(0, JOBS, CHUNK):
            await worker.enqueue_many([noop.enqueue(**PAYLOAD) for _ in range(min(CHUNK, JOBS - start))])
        _say(time.perf_counter() - began)


async def drain() -> None:
    """From the first start until no job is queued or running."""
    working = asyncio.ensure_future(worker.run_async())
    while len(calls) < JOBS or await _left():
        await asyncio.sleep(0.005 if len(calls) >= JOBS else 0.05)
        if working.done():
            await working
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


async def _left() -> bool:
    return bool(await worker.queue_size() or await worker.get_tasks_by_status(TaskStatus.RUNNING))


async def serve() -> None:
    """An idle worker, until it is killed."""
    await worker.run_async()


async def produce() -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    async with worker:
        for _ in range(JOBS):
            await asyncio.sleep(pauses.uniform(0.05, 0.15))
            await stamp.enqueue(time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("streaq"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    verbs = {"fill": fill, "bulk": bulk, "drain": drain, "serve": serve, "produce": produce}
    asyncio.run(verbs[sys.argv[1]]())
