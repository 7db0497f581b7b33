"""Growth: what a claim of 100 jobs takes while many wait, and after many have ended."""

import asyncio
import statistics
import time
from contextlib import AsyncExitStack

import msgspec

from windlass.bench import labour
from windlass.bench.figures import Bars, Base, Row, Section, Target
from windlass.bench.ground import Ground
from windlass.core.job import DEFAULT_QUEUE, Claimed
from windlass.core.moments import SECOND
from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueShare

BATCH = 100
LEASE = 3600 * SECOND
STEADY = Target(1.5, at_least=False)


class Size(msgspec.Struct, frozen=True):
    """How many wait and how many have ended."""

    waiting: int
    ended: int = 0

    @property
    def name(self) -> str:
        """In words."""
        history = f", {self.ended:,} in history" if self.ended else ""
        return f"{self.waiting:,} waiting{history}"


class Claims:
    """A runner of its own on a store, that claims and puts the store back into the state it was in."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claim = 0

    async def begin(self) -> None:
        """A lease, without which there are no claims."""
        await self._store.leases.open(LeaseRequest(runner="bench", worker="bench", length=LEASE))

    async def once(self) -> float:
        """Milliseconds of one claim; then as many jobs are handed in as were taken and completed."""
        self._claim += 1
        shares = (QueueShare(DEFAULT_QUEUE, BATCH),)
        request = ClaimRequest(runner="bench", claim=self._claim, shares=shares, types=("noop",), limit=BATCH)
        began = time.perf_counter()
        claimed = await self._store.jobs.claim(request)
        taken = (time.perf_counter() - began) * 1000
        await self._store.jobs.settle([_completed(job) for job in claimed])
        await self._store.jobs.enqueue(labour.make(len(claimed)))
        return taken


def measure(ground: Ground) -> Section:
    """All sizes side by side, each in a store of its own; then claims on them in turn, round by round."""
    return asyncio.run(_measure(ground))


async def _measure(ground: Ground) -> Section:
    waiting = ground.scale.waiting
    sizes = [*(Size(jobs) for jobs in waiting), Size(waiting[0], ground.scale.history)]
    times: dict[str, list[float]] = {size.name: [] for size in sizes}
    async with AsyncExitStack() as stack:
        ready = [(size, await _prepare(ground, size, stack)) for size in sizes]
        for _ in ground.rounds("growth"):
            # Claim by claim in turn: what slows the machine down for a second slows all sizes.
            taken = [[await claims.once() for _, claims in ready] for _ in range(ground.scale.claims)]
            for (size, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                times[size.name].append(statistics.median(column))
    return _section(ground, times)


async def _prepare(ground: Ground, size: Size, stack: AsyncExitStack) -> Claims:
    ground.say(f"growth: filling a store with {size.name}")
    address = stack.enter_context(ground.store())
    store = open_store(address)
    stack.push_async_callback(store.close)
    for start in range(0, size.waiting, labour.CHUNK):
        await store.jobs.enqueue(labour.make(min(labour.CHUNK, size.waiting - start)))
    if size.ended:
        ground.yardstick.fill_history(address, size.ended)
    claims = Claims(store)
    await claims.begin()
    # What filling left behind (a long write-ahead log, a cold cache) is not what is measured.
    for _ in range(3):
        await claims.once()
    return claims


def _completed(job: Claimed) -> Settlement:
    return Settlement(
        id=job.id, queue=job.queue, attempt=job.attempt, status=Status.COMPLETED, outcome="completed", result="null"
    )


def _section(ground: Ground, times: dict[str, list[float]]) -> Section:
    first = next(iter(times))
    rows = [Row(name=first, unit="ms", rounds=times.pop(first))]
    for name, rounds in times.items():
        rows.append(Row(name=name, unit="ms", rounds=rounds, base=Base(first, rows[0].rounds), target=STEADY))
    chart = Bars(f"A claim of {BATCH} jobs", "ms", [(row.name, row.value) for row in rows], len(rows))
    return Section(
        name="growth",
        title=f"Growth: a claim of {BATCH} jobs",
        rows=rows,
        charts=[chart],
        notes=[
            f"The store's `claim` in this process, flush to disk included: the median of {ground.scale.claims} per "
            "round. In between, untimed, the claimed jobs are completed and as many new ones handed in.",
            "The jobs in history are put there by one SQL statement, not by draining them.",
        ],
    )
