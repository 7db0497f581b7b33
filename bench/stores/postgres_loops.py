"""Bare loops as processes of their own, as workers are: `python -m bench.stores.postgres_loops WHAT DSN JOBS`.

A loop connects, says that it is ready, waits for a line, and at its end prints one line of JSON. So that two of them
begin at the same moment, and none is timed while it starts.
"""

import asyncio
import json
import random
import sys
import time
import uuid
from collections.abc import Awaitable, Callable

import asyncpg
import msgspec
from uuid_utils import uuid7

from bench.stores.postgres_bare import ONE, Loop, on_uvloop

CHANNEL = "bare"


class Drained(msgspec.Struct, frozen=True):
    """The result of one loop, on the clock that all processes share."""

    jobs: int
    began: float
    ended: float
    cpu: float


async def drain(dsn: str, _: int) -> Drained:
    """Claim and complete until nothing is left."""
    loop = await Loop.connect("w", dsn)
    await _ready()
    began, used = time.monotonic(), time.process_time()
    jobs = await loop.drain()
    ended, spent = time.monotonic(), time.process_time() - used
    await loop.close()
    return Drained(jobs, began, ended, spent)


async def listen(dsn: str, jobs: int) -> list[float]:
    """Wait for notifications and claim: milliseconds from enqueue to claimed, of each job."""
    loop, woken, taken = await Loop.connect("w", dsn), asyncio.Event(), list[float]()
    listener = await asyncpg.connect(dsn)
    await listener.add_listener(CHANNEL, lambda *_: woken.set())
    # The first claim prepares its statement, as an idle worker has done.
    await loop.claim()
    await _ready()
    while len(taken) < jobs:
        await woken.wait()
        woken.clear()
        if rows := await loop.claim():
            now = time.monotonic_ns()
            taken += [(now - json.loads(row["payload"])["sent"]) / 1e6 for row in rows]
            await loop.complete(rows)
    await listener.close()
    await loop.close()
    return taken


async def produce(dsn: str, jobs: int) -> int:
    """Enqueue with the pauses of all producers: INSERT and NOTIFY, one statement, one flushed commit."""
    connection = await asyncpg.connect(dsn)
    wake, pauses = await connection.prepare(ONE), random.Random(1)
    await _ready()
    for _ in range(jobs):
        await asyncio.sleep(pauses.uniform(0.05, 0.15))
        key = uuid.UUID(bytes=uuid7().bytes)
        await wake.fetch(key, json.dumps({"n": 1, "s": "x" * 64, "sent": time.monotonic_ns()}))
    await connection.close()
    return jobs


async def _ready() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


LOOPS: dict[str, Callable[[str, int], Awaitable[object]]] = {"drain": drain, "listen": listen, "produce": produce}


async def _main(what: str, dsn: str, jobs: int) -> None:
    print(msgspec.json.encode(await LOOPS[what](dsn, jobs)).decode(), flush=True)


if __name__ == "__main__":
    on_uvloop(_main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
