"""procrastinate with psycopg's pool and a concurrency of 20; plain functions in threads, as it does by itself."""

import asyncio
import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path

import psycopg
from procrastinate import App, PsycopgConnector

VERB, FOLDER = sys.argv[1], Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
STORE = os.environ["BENCH_STORE"]
PAYLOAD = {"n": 1, "s": "x" * 64}
CONCURRENCY, CHUNK = 20, 5000
TABLE = "SELECT to_regclass('procrastinate_jobs')"
LEFT = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status <> 'succeeded')"

app = App(connector=PsycopgConnector(conninfo=STORE))
calls: list[float] = []


async def _noop(n: int, s: str) -> None:
    calls.append(time.perf_counter())


def _noop_in_a_thread(n: int, s: str) -> None:
    calls.append(time.perf_counter())


noop = app.task(name="noop")(_noop_in_a_thread if VERB == "threads" else _noop)


@app.task(name="stamp")  # type: ignore[untyped-decorator]
async def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


async def install() -> None:
    """The tables, if they are not there."""
    async with await psycopg.AsyncConnection.connect(STORE) as connection:
        found = await (await connection.execute(TABLE)).fetchone()
    if found is None or found[0] is None:
        await app.schema_manager.apply_schema_async()


async def fill() -> None:
    """One call, one commit."""
    began = time.perf_counter()
    for _ in range(JOBS):
        await noop.defer_async(**PAYLOAD)
    say(time.perf_counter() - began)


async def bulk() -> None:
    """Its bulk verb, 1,000 to a call."""
    began = time.perf_counter()
    for start in range(0, JOBS, CHUNK):
        await noop.batch_defer_async(*[PAYLOAD] * min(CHUNK, JOBS - start))
    say(time.perf_counter() - began)


async def drain() -> None:
    """From the first start until its table says that all have succeeded."""
    working = asyncio.ensure_future(app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False))
    watcher = await psycopg.AsyncConnection.connect(STORE, autocommit=True)
    while len(calls) < JOBS or await _left(watcher):
        await asyncio.sleep(0.005 if len(calls) >= JOBS else 0.05)
        if working.done():
            await working
    say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


async def _left(watcher: psycopg.AsyncConnection) -> bool:
    row = await (await watcher.execute(LEFT)).fetchone()
    return bool(row and row[0])


async def serve() -> None:
    """An idle worker, until it is killed."""
    await app.run_worker_async(concurrency=CONCURRENCY)


async def produce() -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        await asyncio.sleep(pauses.uniform(0.05, 0.15))
        await stamp.defer_async(sent=time.monotonic_ns())
    say(0.0)


def say(seconds: float) -> None:
    """Print the result for the harness."""
    print(json.dumps({"version": version("procrastinate"), "jobs": JOBS, "seconds": seconds}))


async def main() -> None:
    """Connect, and do what is wanted."""
    verbs = {"fill": fill, "bulk": bulk, "drain": drain, "threads": drain, "serve": serve, "produce": produce}
    async with app.open_async():
        await install()
        await verbs[VERB]()


if __name__ == "__main__":
    asyncio.run(main())
