"""The store contract: a small set of bulk verbs, grouped in roles.

Every verb is atomic, takes n items and returns n answers, and may be repeated after a lost reply: the producer makes
job ids, the runner numbers its claims, and settlements are fenced by (job, attempt). Core decides; stores apply. All
times are by the store's clock. Statistics guarantee less: a repeated `record` counts twice.

Every verb may raise StoreUnavailable; its `maybe_done` tells whether the call may have taken effect.
"""

from collections.abc import Sequence
from typing import Protocol

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed, Enqueued, Job, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import Micros
from windlass.core.why.facts import WhyFacts
from windlass.store.contract_upkeep import LeaderStore, LeaseStore, SignalStore, StatsStore, WorkerStore
from windlass.store.documents import DocumentStore
from windlass.store.records import (
    NEWEST,
    Admitted,
    ClaimRequest,
    Counts,
    Ends,
    FailureKey,
    Held,
    JobEnd,
    JobFilter,
    JobPage,
    Note,
    Settled,
    Transition,
)
from windlass.store.schedules import ScheduleStore


class JobStore(Protocol):
    """The path of a job: enqueue, admit, claim, settle; and notes of running attempts."""

    @property
    def grouped(self) -> bool:
        """Whether concurrent calls share one flush. If not, a claim and a settlement may overlap."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store all jobs or none. A known id returns its existing job.

        `core.jobs.idempotency` decides conflicts of idempotency keys. Jobs of one call are checked in their order.
        Raises KeyConflict or QueueClosed, with nothing stored. A store that is not atomic over several queues checks
        all of them first; if one still refuses after another has stored its jobs, it raises StoreUnavailable with
        `maybe_done`.

        A job with parents is blocked until all of them have completed. A parent's present status counts at once, also
        if it is just being settled: of a completed one the result is stored; with a dead or cancelled one the job is
        stored as cancelled. A parent whose key another job has is replaced by that job. Raises InvalidOption for an
        unknown parent, and for one whose result is needed from a queue that keeps no completed jobs.
        """

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        """Enqueue in the caller's transaction: the jobs exist if and only if the caller commits.

        With a synchronous connection and no event loop it never suspends. If it fails, the transaction is unchanged;
        a serialization failure of the caller's driver is raised as it is. `declared` are queue settings that may not
        be written yet. Raises InvalidOption for a connection that is not to this store.
        """

    async def get_inside(self, connection: object, ids: Sequence[JobId]) -> Sequence[Job | None]:
        """Jobs by id, as the caller's transaction sees them; the connection is as of `enqueue_inside`."""

    async def admit(self, limit: int, queues: Sequence[str] | None = None) -> Admitted:
        """Make due jobs pending, earliest first, and give them their rank.

        With `queues`, other queues may be left out if they would cost more.
        """

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        """Assign pending jobs to a runner, best first; never an expired one.

        Returns nothing while the runner's lease has expired but still exists: it may be renewed after an outage.
        Raises LeaseLost if the runner has no lease.
        """

    async def expire(self, limit: int) -> Sequence[JobId]:
        """Cancel waiting jobs that have not started by their `expires_at`; returns their ids."""

    async def age(self, limit: int) -> int:
        """In queues with ageing, move pending jobs that waited long to the next higher priority at which jobs of
        their queue wait, ordered by rank; returns how many. The public priority stays.
        """

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """Record how attempts ended. An attempt that is no longer running changes nothing.

        In the same step, dependents of a completed job get its result, and are due if they have no other pending
        parent. Dependents of a job that ended otherwise are cancelled, with their own dependents. The same holds for
        every verb that ends a job.
        """

    async def note(self, notes: Sequence[Note]) -> None:
        """Keep progress and log lines of running attempts; others are dropped."""

    async def held(self, runner: str) -> list[Held]:
        """The jobs that this runner holds, according to the store."""

    async def park(self) -> dict[str, int]:
        """Park pending jobs at the heads of queues whose type no live worker knows: {type: jobs}.

        First releases some parked jobs of types that a live worker knows.
        """

    async def parked_types(self) -> list[str]:
        """The types that have parked jobs; cheap, without a lock."""


class OperatorStore(Protocol):
    """What operators and programs do with jobs.

    Verbs that take `versions` do nothing to a job that has another version than the one given for it; the check and
    the change are one step. Its answer is `stale`.
    """

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Jobs by id, in any status."""

    async def outcomes(self, ids: Sequence[JobId]) -> list[str | None]:
        """How the last attempts of dropped jobs ended, for a day: "completed", "failed", …; empty if there was none.
        None: not dropped, or unknown.
        """

    async def cancel(
        self, ids: Sequence[JobId], reason: str, versions: Versions = ANY_VERSION
    ) -> list[Transition | None]:
        """Cancel waiting jobs; ask running ones to stop."""

    async def retry(self, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
        """Make finished or failed jobs pending with a new budget; the attempt number continues.

        Dependents that were cancelled with them wait for them again. A cancelled job whose parent has not completed
        waits for it; if the parent has ended, the retry is refused and names the parent.
        """

    async def run_now(self, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
        """Make scheduled and failed jobs pending; their budget stays."""

    async def change(
        self, ids: Sequence[JobId], change: JobChange, versions: Versions = ANY_VERSION
    ) -> list[Transition | None]:
        """Change waiting jobs, each completely or not at all; of dead ones only the payload (`may_change`).

        A job whose idempotency key is taken in its new queue is not changed; the answer names the holder.
        """

    async def delete(self, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
        """Drop finished jobs; their ids are kept for a day, their keys until their windows are over."""

    async def select(self, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
        """Matching ids, oldest first, after a given one: `limit` of them, or all if fewer match."""

    async def count_completed(self, parent: JobId, after: JobId, before: JobId) -> tuple[int, JobId | None] | None:
        """The number of completed and kept children of a job between two ids, up to the first live one, and its id.

        None: the store would have to read their records.
        """

    async def prune(self, limit: int) -> Sequence[JobId]:
        """Drop finished jobs whose retention is over, at most a day late; returns the ids of up to `limit` of them.

        Always includes jobs that refer to a blob or have notes. A store with daily partitions drops a whole one at
        once without listing the others. Also drops old tombstones, meters, samples and windows of keys.
        """

    async def counts(self) -> Counts:
        """Jobs by queue and status, exact."""

    async def failures(self, limit: int, before: FailureKey = NEWEST) -> list[Job]:
        """Failed and dead jobs before a key, latest failure first; the cost does not depend on their number.

        A store may return fewer than there are, but at least 100.
        """

    async def dead_ends(self, limit: int, before: FailureKey = NEWEST) -> Sequence[JobEnd]:
        """How dead jobs ended, latest first: as `failures`, but without their contents."""

    async def ended(self, since: Micros | None, after: JobId | None, limit: int) -> Ends:
        """Kept jobs that ended at or after a moment, by moment and id: those after (since, after). Without a moment
        only the clock is read.

        The cost depends on the jobs that ended since then, not on the history. A job may appear after others that
        ended later, if its end is committed after theirs: a reader repeats the last seconds.
        """

    async def list(self, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
        """Jobs, newest first. A page is short, or empty, if matches are rare; its cursor continues the search."""

    async def why_facts(self, id: JobId) -> WhyFacts | None:
        """A job and everything that may delay it; bounded cost, without a lock."""


class QueueStore(Protocol):
    """Queues and their settings.

    Verbs that take a `version` raise ChangedSince if the queue has another one, and nothing is written.
    """

    async def declare(self, queues: dict[str, QueueSettings]) -> None:
        """Write the declared settings; an operator's changes stay and win."""

    async def change(
        self, name: str, changed: QueueSettings, was: QueueSettings | None = None, version: str | None = None
    ) -> Queue:
        """Replace the operator's settings; with `was`, only if they are still the same. Returns the new settings."""

    async def pause(self, name: str, length: Micros | None, version: str | None = None) -> Queue:
        """Stop claims from this queue, for a time or until resumed."""

    async def resume(self, name: str, version: str | None = None) -> Queue:
        """Allow claims from it again."""

    async def close(self, name: str, version: str | None = None) -> Queue:
        """Refuse new jobs; existing ones still run."""

    async def open(self, name: str, version: str | None = None) -> Queue:
        """Accept new jobs again."""

    async def list(self) -> list[Queue]:
        """Every queue that was declared, changed, paused or has jobs."""


class Store(Protocol):
    """A store, by roles."""

    @property
    def address(self) -> str:
        """The address for another process, with its secrets: `redact` it for people."""

    @property
    def works_without_loop(self) -> bool:
        """Whether verbs work in a thread without an event loop: they block there, and never suspend."""

    @property
    def begins_without_loop(self) -> bool:
        """Whether an enqueue may begin in a thread without a loop: it suspends where it needs one (`to_loop`)."""

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
    @property
    def documents(self) -> DocumentStore: ...

    def with_timeout(self, seconds: float) -> "Store":
        """The same store, with a time limit for every call."""

    async def tidy(self) -> None:
        """Maintain the store; the coordinator calls this every second."""

    async def migrate(self) -> list[str]:
        """Migrate the schema; returns the names of the applied steps."""

    async def check_schema(self) -> None:
        """Raise SchemaMismatch if a newer Windlass has made a breaking change to the store."""

    async def close(self) -> None:
        """Close every connection, after running calls have ended."""
