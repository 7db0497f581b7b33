"""taskiq with its list broker and no results: uvloop, 100 at once."""

import asyncio
import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path

import uvloop
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}
AT_ONCE = 100

broker = ListQueueBroker(os.environ["BENCH_STORE"])
calls: list[float] = []
drained = asyncio.Event()


@broker.task(task_name="noop")  # type: ignore[untyped-decorator]
async def noop(n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())
    if len(calls) == JOBS:
        drained.set()


@broker.task(task_name="stamp")  # type: ignore[untyped-decorator]
async def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


async def fill() -> None:
    """One call for each; it has no bulk verb."""
    began = time.perf_counter()
    for _ in range(JOBS):
        await noop.kiq(**PAYLOAD)
    _say(time.perf_counter() - began)


async def drain() -> None:
    """From the first start to the last: it keeps no record of jobs that it has popped."""
    receiving = asyncio.ensure_future(run_receiver_task(broker, max_async_tasks=AT_ONCE))
    waiting = asyncio.ensure_future(drained.wait())
    await asyncio.wait([receiving, waiting], return_when=asyncio.FIRST_COMPLETED)
    _say(calls[-1] - calls[0])
    sys.stdout.flush()
    os._exit(0)


async def serve() -> None:
    """An idle worker, until it is killed."""
    await run_receiver_task(broker, max_async_tasks=AT_ONCE)


async def produce() -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        await asyncio.sleep(pauses.uniform(0.05, 0.15))
        await stamp.kiq(time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("taskiq"), "jobs": JOBS, "seconds": seconds}))


async def main() -> None:
    """Connect, and do what is wanted."""
    verb = sys.argv[1]
    broker.is_worker_process = verb in ("drain", "serve")
    await broker.startup()
    await {"fill": fill, "drain": drain, "serve": serve, "produce": produce}[verb]()
    await broker.shutdown()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
