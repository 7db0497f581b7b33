"""oban (Python) with a limit of 200; its open-source core, which fetches and acknowledges in batches of its own."""

import asyncio
import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path

from oban import Oban, job
from oban.schema import install

VERB, FOLDER = sys.argv[1], Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
STORE = os.environ["BENCH_STORE"]
LIMIT, CHUNK = 200, 1000
TABLE = "SELECT to_regclass('oban_jobs')"
LEFT = "SELECT EXISTS (SELECT FROM oban_jobs WHERE state <> 'completed')"

calls: list[float] = []


@job(queue="bench")  # type: ignore[untyped-decorator]
async def noop(n: int, s: str) -> None:
    """Nothing; the moment of its start is all that is kept."""
    calls.append(time.perf_counter())


@job(queue="bench")  # type: ignore[untyped-decorator]
async def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


async def _ask(pool, question: str):  # type: ignore[no-untyped-def]
    async with pool.connection() as connection:
        return (await (await connection.execute(question)).fetchone())[0]


async def fill(pool) -> None:  # type: ignore[no-untyped-def]
    """One call, one commit."""
    async with Oban(pool=pool) as oban:
        began = time.perf_counter()
        for _ in range(JOBS):
            await oban.enqueue(noop.new(1, "x" * 64))
        say(time.perf_counter() - began)


async def bulk(pool) -> None:  # type: ignore[no-untyped-def]
    """Its bulk verb, 1,000 to a call."""
    async with Oban(pool=pool) as oban:
        began = time.perf_counter()
        for start in range(0, JOBS, CHUNK):
            await oban.enqueue_many([noop.new(1, "x" * 64) for _ in range(min(CHUNK, JOBS - start))])
        say(time.perf_counter() - began)


async def drain(pool) -> None:  # type: ignore[no-untyped-def]
    """From the first start until its table says that all are completed."""
    async with Oban(pool=pool, queues={"bench": LIMIT}):
        while len(calls) < JOBS or await _ask(pool, LEFT):  # noqa: ASYNC110 - its tables are asked
            await asyncio.sleep(0.005 if len(calls) >= JOBS else 0.05)
        say(time.perf_counter() - calls[0])
        sys.stdout.flush()
        os._exit(0)


async def serve(pool) -> None:  # type: ignore[no-untyped-def]
    """An idle worker, until it is killed."""
    async with Oban(pool=pool, queues={"bench": LIMIT}):
        await asyncio.Event().wait()


async def produce(pool) -> None:  # type: ignore[no-untyped-def]
    """Enqueue with pauses."""
    pauses = random.Random(1)
    async with Oban(pool=pool) as oban:
        for _ in range(JOBS):
            await asyncio.sleep(pauses.uniform(0.05, 0.15))
            await oban.enqueue(stamp.new(time.monotonic_ns()))
    say(0.0)


def say(seconds: float) -> None:
    """Print the result for the harness."""
    print(json.dumps({"version": version("oban"), "jobs": JOBS, "seconds": seconds}))


async def main() -> None:
    """Connect, make the tables if they are not there, and do what is wanted."""
    pool = await Oban.create_pool(STORE)
    if await _ask(pool, TABLE) is None:
        await install(pool)
    await {"fill": fill, "bulk": bulk, "drain": drain, "serve": serve, "produce": produce}[VERB](pool)
    await pool.close()


if __name__ == "__main__":
    asyncio.run(main())
