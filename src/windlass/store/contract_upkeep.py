"""The store contract: leases, workers, leadership, hints and statistics. See contract.py for the rules."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.stats.meter import Meter, Recent, SumBy
from windlass.core.stats.samples import Sampled
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.records import (
    Campaign,
    CancelRequest,
    LeaseRequest,
    Renewal,
    Rescued,
    RunnerEnd,
    WorkerInfo,
)


class LeaseStore(Protocol):
    """Leases: one per runner, renewed by its supervisor, never renewed after they lapsed."""

    async def open(self, request: LeaseRequest) -> None:
        """Create a lease for a new runner."""

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        """Extend valid leases. The first renewal after a time without any gives every lease a grace.

        Touches nothing but leases. Only renewals count as a sign of life.
        """

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        """Delete an ended runner's lease, then put its jobs back."""

    async def rescue(self, limit: int) -> list[Rescued]:
        """Delete lapsed leases, then put their jobs back."""

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        """Running jobs under this worker's leases that are to be cancelled."""

    def hold_liveness_lock(self, holder: str) -> None:
        """Hold a lock that shows other processes that this one is alive.

        Where a store shares the machine with its workers, death is seen at once and a stall is never taken for death.
        Elsewhere liveness is lease expiry alone, and this is a no-op.
        """

    def release_liveness_lock(self, holder: str) -> None:
        """Release the lock."""


class WorkerStore(Protocol):
    """The registry of workers."""

    async def beat(self, *workers: WorkerInfo) -> None:
        """Register or refresh workers; releases some of the jobs parked for their types, `park` releases the rest."""

    async def unregister(self, worker: str) -> None:
        """Remove the worker."""

    async def list(self) -> list[WorkerInfo]:
        """The live workers, each with the number of jobs that its runners hold."""


class LeaderStore(Protocol):
    """The election of the coordinator: an optimisation, since every duty may be done twice."""

    async def campaign(self, bid: Campaign) -> int | None:
        """Gain or keep the leadership; returns the term's number, or None if another process leads."""

    async def resign(self, candidate: str) -> None:
        """Give up the leadership."""

    async def current(self) -> str | None:
        """The present coordinator; None if there is none."""


OnEnded = Callable[[Collection[JobId]], None]
"""Called with jobs that may have ended."""


class CompletionWatcher(Protocol):
    """Signals jobs that may have ended, on the event loop on which it was created.

    Signals may be repeated, or lost with a connection: polling is always enough.
    """

    @property
    def outage(self) -> str | None:
        """Why no signals arrive; None if they do, as far as is known."""

    def watch(self, job: JobId, queue: str) -> None:
        """Signal this job of this queue when it has ended, and once as soon as the watch is effective: it may have
        ended before. A caller that then reads the job unfinished, or in another queue, calls this again.
        """

    def unwatch(self, job: JobId) -> None:
        """Stop watching it."""

    async def close(self) -> None:
        """Stop signalling, and release connections."""


class SignalStore(Protocol):
    """Wake-up hints. They may be lost; polling is always enough."""

    @property
    def via_supervisor(self) -> bool:
        """Whether hints reach only supervisors, which relay them to their runners."""

    @property
    def names_queues(self) -> bool:
        """Whether a hint means work in the subscribed queues: then a claim follows without a check.

        Otherwise a hint only says that something was written.
        """

    @property
    def outage(self) -> str | None:
        """Why hints of other processes do not arrive; None if they do, as far as is known.

        Where hints are relayed, known since the first verb of a supervisor's store; else since `subscribe`.
        """

    def subscribe(self, queues: Sequence[str]) -> None:
        """Receive hints for these queues only."""

    def wake(self) -> None:
        """Take a hint that was relayed to this process."""

    def cursor(self) -> int:
        """The position in the signals.

        Read before checking for work, so that no signal between check and wait is missed.
        """

    async def wait(self, cursor: int, seconds: float) -> bool:
        """Wait until something may have changed since the cursor, or the timeout; returns whether it has.

        Also returns when a rate that limited claims of this process has tokens again.
        """

    async def has_work(self, queues: Sequence[str], types: Sequence[str] | None) -> bool:
        """Whether a job of these queues and types may be claimed, or any job is due.

        Not from queues that are paused, full or without tokens. Cheap, without a lock. None: of any type, and also
        whether a dependent still waits to be released by a completed parent.
        """

    def watch_completions(self, on_ended: OnEnded) -> CompletionWatcher:
        """A watcher that signals ended jobs on this event loop, whichever process ends them.

        Jobs without a waiter cost nothing.
        """


class StatsStore(Protocol):
    """Meters, summed as runners record them, and samples of those. The cost does not depend on the number of jobs.

    Statistics, not guarantees: a runner that dies loses its last seconds, and a repeated call counts twice.
    """

    async def record(self, meters: Sequence[Meter]) -> None:
        """Add these meters to the current interval."""

    async def recent(
        self, length: Micros, queue: str | None = None, type_: str | None = None, by: SumBy | None = None
    ) -> Recent:
        """The meters of the intervals that overlap the last `length`, by interval, queue and type.

        Of one queue, of one type, or of all. `by` sums the meters of each queue or type into two: one for the
        intervals in the rate window, one for those before it.
        """

    async def oldest(self) -> dict[str, Micros]:
        """How long the oldest pending job of each queue has waited."""

    async def sample(self) -> Sampled:
        """Make samples of past minutes and hours from meters, and count the jobs once a minute.

        May be repeated, and run concurrently. Missed minutes are made up as long as their intervals are kept, hours
        as long as their minutes are; missed counts of jobs are not.
        """

    async def samples(self, window: SampleQuery) -> Samples:
        """The samples of a window, in order of time; a minute or hour that was not made has none."""
