"""arq: uvloop, 100 at once, no results; it looks for work every half second, as by default."""

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
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.constants import default_queue_name
from arq.worker import Worker, func

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}
AT_ONCE = 100
SETTINGS = RedisSettings.from_dsn(os.environ["BENCH_STORE"])

calls: list[float] = []


async def noop(ctx: Any, n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())


async def stamp(ctx: Any, sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


def worker() -> Worker:
    """It keeps no results."""
    functions = [func(each, keep_result=0) for each in (noop, stamp)]
    return Worker(functions, redis_settings=SETTINGS, max_jobs=AT_ONCE, handle_signals=False)


async def fill(pool: ArqRedis) -> None:
    """One call for each; it has no bulk verb."""
    began = time.perf_counter()
    for _ in range(JOBS):
        await pool.enqueue_job("noop", **PAYLOAD)
    _say(time.perf_counter() - began)


async def drain(pool: ArqRedis) -> None:
    """From the first start until its queue is empty: a job leaves it when it is done."""
    working = asyncio.ensure_future(worker().async_run())
    while len(calls) < JOBS or await pool.zcard(default_queue_name):
        await asyncio.sleep(0.005 if len(calls) >= JOBS else 0.05)
        if working.done():
            await working
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


async def serve(pool: ArqRedis) -> None:
    """An idle worker, until it is killed."""
    await worker().async_run()


async def produce(pool: ArqRedis) -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        await asyncio.sleep(pauses.uniform(0.05, 0.15))
        await pool.enqueue_job("stamp", time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("arq"), "jobs": JOBS, "seconds": seconds}))


async def main() -> None:
    """Connect, and do what is wanted."""
    pool = await create_pool(SETTINGS)
    await {"fill": fill, "drain": drain, "serve": serve, "produce": produce}[sys.argv[1]](pool)
    await pool.aclose()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
