"""Growth: what claim and completion of 100 jobs take while many wait, and after many have ended."""

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


class Size(msgspec.Struct, frozen=True):
    """How many wait and how many have ended."""

    waiting: int
    ended: int = 0

    @property
    def name(self) -> str:
        """In words."""
        history = f", {self.ended:,} in history" if self.ended else ""
        return f"{self.waiting:,} waiting{history}"


class Once(msgspec.Struct, frozen=True):
    """What one batch took."""

    claim: float
    """Milliseconds."""
    rate: float
    """Jobs claimed and settled per second."""


class Seen(msgspec.Struct):
    """The medians of each round."""

    claim: list[float] = []
    rate: list[float] = []


class Claims:
    """A runner of its own on a store, that claims and puts the store back into the state it was in."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claim = 0

    async def begin(self) -> None:
        """A lease, without which there are no claims."""
        await self._store.leases.open(LeaseRequest(runner="bench", worker="bench", length=LEASE))

    async def once(self) -> Once:
        """One claim and its completion; then, untimed, as many jobs are handed in as were taken."""
        self._claim += 1
        shares = (QueueShare(DEFAULT_QUEUE, BATCH),)
        request = ClaimRequest(runner="bench", claim=self._claim, shares=shares, types=("noop",), limit=BATCH)
        began = time.perf_counter()
        claimed = await self._store.jobs.claim(request)
        taken = (time.perf_counter() - began) * 1000
        await self._store.jobs.settle([_completed(job) for job in claimed])
        whole = time.perf_counter() - began
        await self._store.jobs.enqueue(labour.make(len(claimed)))
        return Once(taken, len(claimed) / whole)


def measure(ground: Ground) -> Section:
    """All sizes side by side, each in a store of its own; then claims on them in turn, round by round."""
    return asyncio.run(_measure(ground))


async def _measure(ground: Ground) -> Section:
    waiting = ground.scale.waiting
    sizes = [*(Size(jobs) for jobs in waiting), Size(waiting[0], ground.scale.history)]
    seen = {size.name: Seen() for size in sizes}
    ground.yardstick.longest_call()
    async with AsyncExitStack() as stack:
        ready = [(size, await _prepare(ground, size, stack)) for size in sizes]
        for _ in ground.rounds("growth"):
            # Claim by claim in turn: what slows the machine down for a second slows all sizes.
            taken = [[await claims.once() for _, claims in ready] for _ in range(ground.scale.claims)]
            for (size, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                seen[size.name].claim.append(statistics.median(once.claim for once in column))
                seen[size.name].rate.append(statistics.median(once.rate for once in column))
        longest = ground.yardstick.longest_call()
    return _section(ground, seen, longest)


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


def _section(ground: Ground, seen: dict[str, Seen], longest: float | None) -> Section:
    claims = _rows({name: each.claim for name, each in seen.items()}, "ms", ground.yardstick.goals.steady)
    rates = {f"both, {name}": each.rate for name, each in seen.items()}
    rows = [*claims, *_rows(rates, "jobs/s", ground.yardstick.goals.waiting)]
    if longest is not None:
        target = ground.yardstick.goals.longest
        rows.append(Row(name="longest call, filling included", unit="ms", rounds=[longest], target=target))
    chart = Bars(f"A claim of {BATCH} jobs", "ms", [(row.name, row.value) for row in claims], len(claims))
    return Section(
        name="growth",
        title=f"Growth: a claim of {BATCH} jobs",
        rows=rows,
        charts=[chart],
        notes=[
            f"The store's `claim` in this process, flush to disk included: the median of {ground.scale.claims} per "
            "round. Then the claimed jobs are completed, and, untimed, as many new ones handed in.",
            "Both: claim and completion of a batch, one after the other, as jobs per second.",
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
