"""pgqueuer on asyncpg and uvloop, batches of 1,000; plain functions through `asyncio.to_thread`, as it advises."""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

VERB, FOLDER = sys.argv[1], Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
STORE = os.environ["BENCH_STORE"]
PAYLOAD = json.dumps({"n": 1, "s": "x" * 64}).encode()
BATCH, CHUNK = 1000, 5000
LEFT = "SELECT EXISTS (SELECT FROM pgqueuer)"

calls: list[float] = []


async def noop(job: object) -> None:
    """Nothing; the moment of its start is all that is kept."""
    calls.append(time.perf_counter())


async def noop_in_a_thread(job: object) -> None:
    """Nothing, in a thread."""
    await asyncio.to_thread(calls.append, time.perf_counter())


async def stamp(job) -> None:  # type: ignore[no-untyped-def]
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{job.payload.decode()} {started}\n")


async def queries() -> Queries:
    """A connection; the tables are made if they are not there."""
    made = Queries(AsyncpgDriver(await asyncpg.connect(STORE)))
    if not await made.has_table("pgqueuer"):
        await made.install()
    return made


async def fill() -> None:
    """One call, one commit."""
    queue = await queries()
    began = time.perf_counter()
    for _ in range(JOBS):
        await queue.enqueue("noop", PAYLOAD)
    say(time.perf_counter() - began)


async def bulk() -> None:
    """Its bulk verb, 1,000 to a call."""
    queue = await queries()
    began = time.perf_counter()
    for start in range(0, JOBS, CHUNK):
        size = min(CHUNK, JOBS - start)
        await queue.enqueue(["noop"] * size, [PAYLOAD] * size, [0] * size)
    say(time.perf_counter() - began)


async def drain() -> None:
    """From the first start until its table is empty: it deletes what is completed."""
    handler = noop_in_a_thread if VERB == "threads" else noop
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(STORE)))
    queue.entrypoint("noop")(handler)
    working = asyncio.ensure_future(queue.run(batch_size=BATCH))
    watcher = await asyncpg.connect(STORE)
    while len(calls) < JOBS or await watcher.fetchval(LEFT):
        await asyncio.sleep(0.005 if len(calls) >= JOBS else 0.05)
        if working.done():
            await working
    say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


async def serve() -> None:
    """An idle worker, until it is killed."""
    await queries()
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(STORE)))
    queue.entrypoint("stamp")(stamp)
    await queue.run(batch_size=BATCH)


def pauses() -> Iterator[float]:
    """Seconds before each enqueue: random, or at a rate what is left until its moment."""
    chance, rate = random.Random(1), float(os.environ.get("BENCH_RATE", "0"))
    begin = float(os.environ.get("BENCH_BEGIN", "0"))
    for number in range(JOBS):
        yield max(0.0, begin + number / rate - time.monotonic()) if rate else chance.uniform(0.05, 0.15)


async def produce() -> None:
    """Enqueue with pauses, or at a rate after a job that opens the connection."""
    queue = await queries()
    if "BENCH_RATE" in os.environ:
        await queue.enqueue("stamp", b"0")
    for pause in pauses():
        await asyncio.sleep(pause)
        await queue.enqueue("stamp", str(time.monotonic_ns()).encode())
    say(0.0)


def say(seconds: float) -> None:
    """Print the result for the harness."""
    print(json.dumps({"version": version("pgqueuer"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    verbs = {"fill": fill, "bulk": bulk, "drain": drain, "threads": drain, "serve": serve, "produce": produce}
    uvloop.run(verbs[VERB]())
