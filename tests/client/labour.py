"""A worker's part, played by hand: jobs are claimed and settled through the store's contract, without a process."""

from random import Random
from typing import Any

from windlass import App, Job
from windlass.core.jobs.job import Claimed, JobError
from windlass.core.jobs.outcome import Done, Outcome, Policy, Raised, decide
from windlass.core.jobs.retry import Fixed
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota


class Labour:
    """Claims every job of the default queue, and ends one after the other as it is told."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._claims = 0

    def complete(self, result: str = "null") -> None:
        """The next job returns this JSON."""
        self._app._portal().run(self.aend(Done(result)))

    def fail(self, error: BaseException) -> None:
        """The next job raises this."""
        self._app._portal().run(self.aend(raised(error)))

    async def aend(self, outcome: Outcome) -> None:
        """Claim the next job and settle it, on whatever loop this is."""
        store = await self._app._ready()
        job = await self.aclaim(store)
        await store.jobs.settle([decide(job, outcome, Policy(Fixed(base=0, jitter=0)), Random(0))])

    async def aend_many(self, store: Store, most: int, outcome: Outcome) -> int:
        """Claim so many jobs of type `t`, and settle all of them together: how many there were."""
        await store.leases.open(LeaseRequest(runner="hand", worker="by", length=60_000_000))
        self._claims += 1
        quotas = (QueueQuota("default", most),)
        claim = ClaimRequest(runner="hand", claim=self._claims, quotas=quotas, types=("t",), limit=most)
        jobs = await store.jobs.claim(claim)
        await store.jobs.settle([decide(job, outcome, Policy(Fixed(base=0, jitter=0)), Random(0)) for job in jobs])
        return len(jobs)

    async def aclaim(self, store: Store) -> Claimed:
        """The next job, held by us."""
        await store.leases.open(LeaseRequest(runner="hand", worker="by", length=60_000_000))
        self._claims += 1
        types = {job.type for job in (await self._app.jobs.alist()).items}
        await store.jobs.admit(10)
        request = ClaimRequest(
            runner="hand",
            claim=self._claims,
            quotas=(QueueQuota("default", 1),),
            types=tuple(types),
            limit=1,
        )
        (job,) = await store.jobs.claim(request)
        return job


def raised(error: BaseException) -> Raised:
    """The outcome of a handler that raised."""
    return Raised(error, JobError(type(error).__name__, str(error)))


def only_job(app: App) -> Job:
    """The one job that there is."""
    (job,) = app.jobs.list().items
    return app.jobs.get(job.id)


def payload_of(app: App) -> Any:
    """The payload of the one job that there is."""
    return only_job(app).payload


def total(app: App) -> int:
    """How many jobs there are, in whatever status."""
    return sum(app.stats.counts().totals.values())
