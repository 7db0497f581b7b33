"""Late: how long after its time a job starts, and what a claim takes, while very many others wait for theirs."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import Iterator

import msgspec

from windlass.bench import labour, tasks
from windlass.bench.contest import BenchFailed
from windlass.bench.figures import Base, Row, percentile
from windlass.bench.goals import at_most
from windlass.bench.ground import Ground
from windlass.bench.growth import Claims
from windlass.bench.labour import Labour
from windlass.bench.latency import stamps
from windlass.bench.line import LineUp
from windlass.core.moments import SECOND
from windlass.store.clock import SystemClock
from windlass.store.contract import Store
from windlass.store.open import open_store

TOMORROW = 86_400 * SECOND
APART = SECOND // 1000
NOTHING = at_most(1.2)
"""What those who wait may cost a claim."""


class Late(msgspec.Struct):
    """Milliseconds of each round."""

    median: list[float] = []
    worst: list[float] = []


@contextlib.contextmanager
def holding(ground: Ground, address: str, *, held: bool) -> Iterator[None]:
    """With a snapshot held open by somebody else, or without."""
    with ground.yardstick.hold_snapshot(address) if held else contextlib.nullcontext():
        yield


def late(ground: Ground, found: Late, *, held: bool) -> None:
    """One round: a worker that waits, and jobs that come due one after the other."""
    scale = ground.scale
    with ground.store() as address:
        path = ground.scratch() / "stamps"
        asyncio.run(_filled(address, scale.scheduled))
        environment = {tasks.STAMPS: str(path)}
        with (
            holding(ground, address, held=held),
            Labour(address, ground.folder, environment).worker() as served,
        ):
            served.ends_within(scale.start_seconds)
            begin = asyncio.run(_trickle(address, scale.trickling, round(scale.ahead_seconds * SECOND)))
            if SystemClock().wall() >= begin:
                raise BenchFailed("jobs were due before all were handed in")
            taken = stamps(served, path, scale.trickling)
    found.median.append(percentile(taken, 50))
    found.worst.append(max(taken))


async def _filled(address: str, scheduled: int) -> None:
    store = open_store(address)
    try:
        await _wait_for_tomorrow(store, scheduled)
    finally:
        await store.close()


async def _wait_for_tomorrow(store: Store, scheduled: int) -> None:
    """Not all for the same moment: a microsecond apart, as far as they go."""
    for start in range(0, scheduled, labour.CHUNK):
        made = labour.make(min(labour.CHUNK, scheduled - start))
        await store.jobs.enqueue([msgspec.structs.replace(job, delay=TOMORROW + start) for job in made])


async def _trickle(address: str, jobs: int, ahead: int) -> int:
    """Jobs whose stamps tell how late they started; when the first is due."""
    store = open_store(address)
    try:
        # Connected and warm before the time runs.
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


def beside(ground: Ground) -> list[Row]:
    """The claim of pending jobs without others that wait for their time and with many, claim by claim in turn."""
    return asyncio.run(_beside(ground))


async def _beside(ground: Ground) -> list[Row]:
    scale = ground.scale
    alone, among = list[float](), list[float]()
    async with contextlib.AsyncExitStack() as stack:
        ready: list[tuple[list[float], Claims]] = []
        for figures, scheduled in ((alone, 0), (among, scale.scheduled)):
            ground.say(f"delays: filling a store with {scheduled:,} for tomorrow")
            store = open_store(stack.enter_context(ground.store()))
            stack.push_async_callback(store.close)
            await _wait_for_tomorrow(store, scheduled)
            ready.append((figures, await LineUp(store).ready(scale.waiting[0], None)))
        for _ in ground.rounds("delays, claims"):
            taken = [[await claims.once() for _, claims in ready] for _ in range(scale.claims)]
            for (figures, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                figures.append(statistics.median(once.claim for once in column))
    base = Base("claim, nobody waits for later", alone)
    name = f"claim, {scale.scheduled:,} wait for later"
    return [Row(name=name, unit="ms", rounds=among, base=base, target=NOTHING)]
