"""Growth: the time of a claim and a completion of 100 jobs while many wait, and after many have finished."""

import asyncio
import statistics
import time
from contextlib import AsyncExitStack

import msgspec

from bench.context import BenchContext
from bench.report.figures import Bars, Base, Row, Section, Target
from bench.worker import CHUNK, make_jobs
from windlass.core.jobs.job import DEFAULT_QUEUE, Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota

BATCH = 100
LEASE = 3600 * SECOND


class Size(msgspec.Struct, frozen=True):
    """How many jobs wait and how many have finished."""

    waiting: int
    ended: int = 0

    @property
    def name(self) -> str:
        """Its name in the report."""
        history = f", {self.ended:,} in history" if self.ended else ""
        return f"{self.waiting:,} waiting{history}"


class BatchTime(msgspec.Struct, frozen=True):
    """The time of one batch."""

    claim: float
    """Milliseconds."""
    rate: float
    """Jobs claimed and settled per second."""


class Medians(msgspec.Struct):
    """The medians of each round."""

    claim: list[float] = []
    rate: list[float] = []


class Claims:
    """A runner on a store, which claims and then restores the state of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claim = 0

    async def begin(self) -> None:
        """A lease, without which there are no claims."""
        await self._store.leases.open(LeaseRequest(runner="bench", worker="bench", length=LEASE))

    async def once(self) -> BatchTime:
        """One claim and its completion; then, untimed, as many jobs are enqueued as were taken."""
        self._claim += 1
        quotas = (QueueQuota(DEFAULT_QUEUE, BATCH),)
        request = ClaimRequest(runner="bench", claim=self._claim, quotas=quotas, types=("noop",), limit=BATCH)
        began = time.perf_counter()
        claimed = await self._store.jobs.claim(request)
        taken = (time.perf_counter() - began) * 1000
        await self._store.jobs.settle([_completed(job) for job in claimed])
        whole = time.perf_counter() - began
        await self._store.jobs.enqueue(make_jobs(len(claimed)))
        return BatchTime(taken, len(claimed) / whole)


def measure(context: BenchContext) -> Section:
    """All sizes side by side, each in a store of its own; then claims on them in turn, round by round."""
    return asyncio.run(_measure(context))


async def _measure(context: BenchContext) -> Section:
    waiting = context.scale.waiting
    sizes = [*(Size(jobs) for jobs in waiting), Size(waiting[0], context.scale.history)]
    seen = {size.name: Medians() for size in sizes}
    context.store_bench.longest_call()
    async with AsyncExitStack() as stack:
        ready = [(size, await _prepare(context, size, stack)) for size in sizes]
        for _ in context.rounds("growth"):
            # Claim by claim in turn: a slow second of the machine affects all sizes.
            taken = [[await claims.once() for _, claims in ready] for _ in range(context.scale.claims)]
            for (size, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                seen[size.name].claim.append(statistics.median(once.claim for once in column))
                seen[size.name].rate.append(statistics.median(once.rate for once in column))
        longest = context.store_bench.longest_call()
    return _section(context, seen, longest)


async def _prepare(context: BenchContext, size: Size, stack: AsyncExitStack) -> Claims:
    context.progress(f"growth: filling a store with {size.name}")
    address = stack.enter_context(context.store())
    store = open_store(address)
    stack.push_async_callback(store.close)
    for start in range(0, size.waiting, CHUNK):
        await store.jobs.enqueue(make_jobs(min(CHUNK, size.waiting - start)))
    if size.ended:
        context.store_bench.fill_history(address, size.ended)
    claims = Claims(store)
    await claims.begin()
    # The effects of filling (a long write-ahead log, a cold cache) are not measured.
    for _ in range(3):
        await claims.once()
    return claims


def _completed(job: Claimed) -> Settlement:
    return Settlement(
        id=job.id, queue=job.queue, attempt=job.attempt, status=Status.COMPLETED, outcome="completed", result="null"
    )


def _section(context: BenchContext, seen: dict[str, Medians], longest: float | None) -> Section:
    claims = _rows({name: each.claim for name, each in seen.items()}, "ms", context.store_bench.targets.steady)
    rates = {f"both, {name}": each.rate for name, each in seen.items()}
    rows = [*claims, *_rows(rates, "jobs/s", context.store_bench.targets.waiting)]
    if longest is not None:
        target = context.store_bench.targets.longest
        rows.append(Row(name="longest call, filling included", unit="ms", rounds=[longest], target=target))
    chart = Bars(f"A claim of {BATCH} jobs", "ms", [(row.name, row.value) for row in claims], len(claims))
    return Section(
        name="growth",
        title=f"Growth: a claim of {BATCH} jobs",
        rows=rows,
        charts=[chart],
        notes=[
            f"The store's `claim` in this process, flush to disk included: the median of {context.scale.claims} per "
            "round. Then the claimed jobs are completed, and, untimed, as many new ones enqueued.",
            "Both: claim and completion of a batch in turn, as jobs per second.",
            "The jobs in history are put there directly, not by draining them.",
        ],
    )


def _rows(found: dict[str, list[float]], unit: str, target: Target | None) -> list[Row]:
    """The first, and the others by it."""
    (first, base), *others = found.items()
    return [
        Row(name=first, unit=unit, rounds=base),
        *(Row(name=name, unit=unit, rounds=each, base=Base(first, base), target=target) for name, each in others),
    ]
