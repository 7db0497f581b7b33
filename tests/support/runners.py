"""A runner as the store sees it: it says truly what it holds, and can be asked to claim, settle and die."""

from typing import Any

from tests.support.seed import completed, open_lease, request
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import Rate
from windlass.core.jobs.job import Claimed
from windlass.core.moments import DAY, Micros
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd


class Runner:
    """One runner of the default queue."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self.held: list[Claimed] = []

    async def claim(self, limit: int = 100, **fields: Any) -> list[Claimed]:
        """Claim, and hold what comes."""
        asked = request(self.name, limit=limit, held=len(self.held), **fields)
        jobs = await self._store.jobs.claim(asked)
        self.held += jobs
        return jobs

    async def complete(self, jobs: int | None = None) -> None:
        """Complete the first so many of what it holds, or all."""
        done = self.held[: len(self.held) if jobs is None else jobs]
        self.held = self.held[len(done) :]
        await self._store.jobs.settle([completed(job) for job in done])

    async def end(self) -> None:
        """Its supervisor has seen it end."""
        await self._store.leases.end(RunnerEnd(runner=self.name, started=frozenset(), crashed=True))
        self.held = []


async def new_runner(store: Store, name: str = "r1", lease: Micros = DAY) -> Runner:
    """One whose lease outlasts a test, unless said otherwise."""
    return Runner(store, await open_lease(store, name, length=lease))


async def rule(store: Store, queue: str = "default", **settings: Any) -> None:
    """Let these settings hold for a queue."""
    await store.queues.change(queue, QueueSettings(**settings))


def within_rate(starts: list[tuple[Micros, int]], rate: Rate) -> bool:
    """Whether the cost of the starts, (moment, cost), in every window is at most what the rate brings and a burst."""
    starts = sorted(starts)
    for i, (begin, _) in enumerate(starts):
        cost = 0
        for moment, each in starts[i:]:
            cost += each
            if cost * rate.period > (moment - begin) * rate.tokens + rate.burst * rate.period:
                return False
    return True
