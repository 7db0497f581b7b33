"""Late: how late a job starts, and the time of a claim, while very many other jobs are delayed."""

import asyncio
import contextlib
import statistics
import time

import msgspec

from bench import tasks
from bench.context import BenchContext
from bench.measures.growth import Claims
from bench.measures.key_queue import StoreFiller
from bench.measures.latency import stamps
from bench.report.figures import Base, Row, percentile
from bench.targets import at_most
from bench.worker import CHUNK, Worker, make_jobs
from windlass.bench.process import BenchFailed
from windlass.core.moments import SECOND
from windlass.store.clock import SystemClock
from windlass.store.contract import Store
from windlass.store.open import open_store

TOMORROW = 86_400 * SECOND
APART = SECOND // 1000
NOTHING = at_most(1.2)
"""How much slower waiting jobs may make a claim."""


class Late(msgspec.Struct):
    """Milliseconds of each round."""

    median: list[float] = []
    worst: list[float] = []


def late(context: BenchContext, found: Late, *, held: bool) -> None:
    """One round: a worker that waits, and jobs that come due one after the other."""
    scale = context.scale
    with context.store() as address:
        path = context.scratch() / "stamps"
        asyncio.run(_filled(address, scale.scheduled))
        environment = {tasks.STAMPS: str(path)}
        with (
            context.holding_snapshot(address, held=held),
            Worker(address, context.folder, environment).start() as process,
        ):
            process.ends_within(scale.start_seconds)
            begin = asyncio.run(_trickle(address, scale.trickling, round(scale.ahead_seconds * SECOND)))
            if SystemClock().wall() >= begin:
                raise BenchFailed("jobs were due before all were enqueued")
            taken = stamps(process, path, scale.trickling)
    found.median.append(percentile(taken, 50))
    found.worst.append(max(taken))


async def _filled(address: str, scheduled: int) -> None:
    store = open_store(address)
    try:
        await _wait_for_tomorrow(store, scheduled)
    finally:
        await store.close()


async def _wait_for_tomorrow(store: Store, scheduled: int) -> None:
    """Enqueue jobs for tomorrow, each call for another moment."""
    for start in range(0, scheduled, CHUNK):
        made = make_jobs(min(CHUNK, scheduled - start))
        await store.jobs.enqueue([msgspec.structs.replace(job, delay=TOMORROW + start) for job in made])


async def _trickle(address: str, jobs: int, ahead: int) -> int:
    """Enqueue jobs whose stamps show how late they start; returns when the first is due."""
    store = open_store(address)
    try:
        # The producer is connected and warm before the first job is due.
        await store.operator.counts()
        begin, same = SystemClock().wall() + ahead, time.monotonic_ns() + ahead * 1000
        await store.jobs.enqueue(
            [
                msgspec.structs.replace(tasks.stamp.job(same + n * APART * 1000), run_at=begin + n * APART)
                for n in range(jobs)
            ]
        )
    finally:
        await store.close()
    return begin


def beside(context: BenchContext) -> list[Row]:
    """The claim of pending jobs without others that wait for their time and with many, claim by claim in turn."""
    return asyncio.run(_beside(context))


async def _beside(context: BenchContext) -> list[Row]:
    scale = context.scale
    alone, among = list[float](), list[float]()
    async with contextlib.AsyncExitStack() as stack:
        ready: list[tuple[list[float], Claims]] = []
        for figures, scheduled in ((alone, 0), (among, scale.scheduled)):
            context.progress(f"delays: filling a store with {scheduled:,} for tomorrow")
            store = open_store(stack.enter_context(context.store()))
            stack.push_async_callback(store.close)
            await _wait_for_tomorrow(store, scheduled)
            ready.append((figures, await StoreFiller(store).ready(scale.waiting[0], None)))
        for _ in context.rounds("delays, claims"):
            taken = [[await claims.once() for _, claims in ready] for _ in range(scale.claims)]
            for (figures, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                figures.append(statistics.median(once.claim for once in column))
    base = Base("claim, no job waits for later", alone)
    name = f"claim, {scale.scheduled:,} wait for later"
    return [Row(name=name, unit="ms", rounds=among, base=base, target=NOTHING)]
