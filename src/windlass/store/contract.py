"""The store contract: a small set of bulk verbs in roles.

Every verb is atomic, takes n and gives n, and is safe to repeat after a lost reply: jobs have ids made by the
producer, claims have numbers made by the runner, settlements are fenced by (job, attempt). Stores apply facts;
what the facts are is decided in core. All times are the store's own clock. Only statistics are less than that: a
repeated `record` counts twice.

Every verb may raise StoreUnavailable; its `maybe_done` tells whether the call may have taken effect.
"""

from collections.abc import Sequence
from typing import Protocol

from windlass.core.change import JobChange
from windlass.core.circumstances import Circumstances
from windlass.core.ids import JobId
from windlass.core.job import Claimed, Enqueued, Job, NewJob
from windlass.core.moments import Micros
from windlass.core.outcome import Settlement
from windlass.core.queue import Queue, QueueSettings
from windlass.store.records import (
    Admitted,
    ClaimRequest,
    Counts,
    Held,
    JobFilter,
    JobPage,
    Moved,
    Note,
    Settled,
)
from windlass.store.schedules import ScheduleStore
from windlass.store.upkeep import LeaderStore, LeaseStore, SignalStore, StatsStore, WorkerStore


class JobStore(Protocol):
    """The walk of a job: enqueue, admit, claim, settle; and what workers say on the way."""

    @property
    def grouped(self) -> bool:
        """Whether what is asked for in one moment is written by one flush; else a claim and a settlement overlap."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store all of them or none. A known id answers with its job.

        Where another job has the idempotency key, `core.idempotency.judge` says what happens. Jobs of one call
        meet each other in their order. Raises KeyConflict, with nothing stored, if one of them wants that, and
        QueueClosed if a new one is for a queue that takes none.

        One with parents is blocked until all of them have completed. What has become of a parent already counts at
        once, also of one that is just settling: completed, its result is there; dead or cancelled, the job is stored
        as cancelled. A parent whose key another job has is replaced by that one. Raises InvalidOption for a parent
        that is unknown, and for one whose result is wanted in a queue that keeps no completed jobs.
        """

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        """The same in the caller's own transaction: the jobs exist if and only if the caller commits.

        With a synchronous connection it never suspends where there is no event loop. If it fails, that transaction
        is as it was; what the caller's own driver says of a serialization failure passes as it is. `declared` are
        settings of queues that may not be written yet; a lane of ours would wait for the very lock that the
        caller holds. Raises InvalidOption for a connection that is not of this store.
        """

    async def admit(self, limit: int) -> Admitted:
        """Make due jobs pending, earliest first, and give them their rank."""

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        """Hold pending jobs for a runner, best first; never one that has expired.

        Raises LeaseLost if the runner has no lease.
        """

    async def expire(self, limit: int) -> int:
        """Cancel waiting jobs that have not started by their `expires_at`: how many."""

    async def age(self, limit: int) -> int:
        """In queues that say so, let pending jobs that have waited long move up to the next higher priority at which
        jobs of their queue wait, where they stand by their rank: how many. The priority that people see stays."""

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """Record how attempts ended. One that is no longer running changes nothing and answers so.

        In the same step, who waits for a job that completed gets its result, and is due if it waits for nobody else.
        Who waits for one that ended otherwise is cancelled, and who waits for that, and so on: so it is with every
        verb that ends a job.
        """

    async def note(self, notes: Sequence[Note]) -> None:
        """Keep progress and log lines of running attempts; those of others are dropped."""

    async def held(self, runner: str) -> list[Held]:
        """What the store thinks this runner is running."""

    async def park(self) -> dict[str, int]:
        """Set aside pending jobs at the heads of queues whose type no live worker knows: {type: jobs}."""


class OperatorStore(Protocol):
    """What people and programs do with jobs from outside."""

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Look jobs up wherever they are in their lives."""

    async def outcomes(self, ids: Sequence[JobId]) -> list[str | None]:
        """How the last attempts of dropped jobs ended, for a day after their ends: "completed", "failed", …; empty if
        there was none. None: it is not dropped, or nothing is remembered of it."""

    async def cancel(self, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
        """Cancel waiting jobs; ask running ones to stop."""

    async def retry(self, ids: Sequence[JobId]) -> list[Moved | None]:
        """Make finished or failed jobs pending with a fresh budget; the attempt number goes on.

        Those that were cancelled because one of them ended wait for it again. A cancelled job whose parent has not
        completed waits for that; if the parent has ended, the retry is refused, and names it.
        """

    async def run_now(self, ids: Sequence[JobId]) -> list[Moved | None]:
        """Make scheduled and failed jobs pending; their budget stays as it is."""

    async def change(self, ids: Sequence[JobId], change: JobChange) -> list[Moved | None]:
        """Change waiting jobs, each wholly or not at all.

        A job that would meet another one's idempotency key in its new queue stays as it is, and names the holder.
        """

    async def delete(self, ids: Sequence[JobId]) -> list[Moved | None]:
        """Drop finished jobs; their ids are remembered for a day, their keys until their windows are over."""

    async def select(self, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
        """Ids that match, oldest first, after a given one: for verbs by filter, page by page."""

    async def prune(self, limit: int) -> Sequence[JobId]:
        """Drop finished jobs whose retention is over, at the latest a day after: the ids of up to `limit` of them.

        One that refers to a blob, or has notes, is always named. Of others a store that keeps finished jobs by the
        day need not tell: it drops a whole day at once, when that is over. Old tombstones, meters, samples and
        windows of keys go too.
        """

    async def counts(self) -> Counts:
        """Jobs by queue and status, exact."""

    async def failures(self, limit: int) -> list[Job]:
        """Failed and dead jobs, the one that failed last first; cheap however many jobs there are."""

    async def list(self, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
        """Jobs, newest first."""

    async def circumstances(self, id: JobId) -> Circumstances | None:
        """A job and all that may hold it up; cheap however many jobs there are, and without a lock."""


class QueueStore(Protocol):
    """Queues and their settings."""

    async def declare(self, queues: dict[str, QueueSettings]) -> None:
        """Write what the code says; an operator's change stays and wins."""

    async def change(self, name: str, changed: QueueSettings, was: QueueSettings | None = None) -> Queue:
        """Replace the operator's change; given what it `was`, only if it is that still: the answer tells."""

    async def pause(self, name: str, length: Micros | None) -> Queue:
        """Let no more jobs of this queue be claimed, for a time or until resumed."""

    async def resume(self, name: str) -> Queue:
        """Let them be claimed again."""

    async def close(self, name: str) -> Queue:
        """Let it take no new jobs; those that are there go on."""

    async def open(self, name: str) -> Queue:
        """Let it take new jobs again."""

    async def list(self) -> list[Queue]:
        """Every queue that was declared, changed, paused or holds jobs."""


class Store(Protocol):
    """A place where jobs are kept."""

    @property
    def address(self) -> str:
        """Where it is, as another process needs to know it: with its secrets, so `redact` it for people."""

    @property
    def loopless(self) -> bool:
        """Whether verbs work in a thread without an event loop: they block there, and never suspend."""

    @property
    def jobs(self) -> JobStore: ...
    @property
    def operator(self) -> OperatorStore: ...
    @property
    def queues(self) -> QueueStore: ...
    @property
    def schedules(self) -> ScheduleStore: ...
    @property
    def leases(self) -> LeaseStore: ...
    @property
    def workers(self) -> WorkerStore: ...
    @property
    def leader(self) -> LeaderStore: ...
    @property
    def signals(self) -> SignalStore: ...
    @property
    def stats(self) -> StatsStore: ...

    def bounded(self, seconds: float) -> "Store":
        """The same store, with every call giving up after so many seconds."""

    async def tidy(self) -> None:
        """Do what keeps the store quick, if there is anything to do: the coordinator asks for it every second."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to date: the names of what was applied."""

    async def close(self) -> None:
        """Release every connection; running calls end first."""
