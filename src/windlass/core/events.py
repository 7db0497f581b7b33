"""Events: frozen records for logs, metrics and other listeners.

Services emit events to listeners and never wait for them.
"""

from collections.abc import Callable

import msgspec

from windlass.core.ids import JobId
from windlass.core.status import Status


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all events."""


class WorkerStarted(Event, frozen=True, kw_only=True):
    """A worker registered and its supervisor renews leases."""

    worker: str
    processes: int
    concurrency: int
    queues: tuple[str, ...]
    app_queues: tuple[str, ...] = ()
    """Queues that the app names: a served queue that is missing here may be mistyped."""
    store: str


class WorkerStopped(Event, frozen=True, kw_only=True):
    """A worker ended. Unless it `signed_off`, the store lists it with its leases until these expire."""

    worker: str
    code: int
    signed_off: bool = True


class RunnerStarted(Event, frozen=True, kw_only=True):
    """A runner process holds a lease and claims."""

    runner: str
    pid: int


class RunnerEnded(Event, frozen=True, kw_only=True):
    """A runner process ended; `expected`: it was asked to stop."""

    runner: str
    pid: int
    status: str
    expected: bool


class RunnerBlocked(Event, frozen=True, kw_only=True):
    """A handler blocks a runner's event loop. The runner keeps its lease; its prefetched jobs are requeued."""

    runner: str
    pid: int
    seconds: float
    jobs: tuple[JobId, ...]
    where: str


class RunnerHung(Event, frozen=True, kw_only=True):
    """A runner was ended because a handler blocked its event loop beyond its timeout."""

    runner: str
    pid: int
    jobs: tuple[JobId, ...]
    where: str


class JobOverdue(Event, frozen=True, kw_only=True):
    """A handler was asked to stop and still runs: its runner claims no more jobs, and ends with it.

    An embedded worker cannot end its process, so there the handler keeps its slot.
    """

    job: JobId
    type: str
    attempt: int
    worker: str
    why: str
    seconds: float | None
    """Until its runner ends at the latest; None: the runner does not end."""


class DrainStarted(Event, frozen=True, kw_only=True):
    """No more claims; running jobs get the drain time."""

    worker: str
    seconds: float
    empty: bool = False
    """With `--until-empty`: nothing is left to do."""
    unserved: tuple[str, ...] = ()
    """With `--until-empty`: other queues that have pending jobs."""


class LeaseExpired(Event, frozen=True, kw_only=True):
    """A runner's lease could not be renewed: the runner continues under a new id."""

    runner: str


class AttemptEnded(Event, frozen=True, kw_only=True):
    """A job's attempt was settled in the store."""

    job: JobId
    type: str
    queue: str
    attempt: int
    status: Status
    outcome: str
    worker: str
    seconds: float | None = None
    error: str | None = None
    wait: float | None = None
    """Seconds until the next attempt, for failed and snoozed ones."""
    trace: str | None = None
    span: str | None = None


class ResultNotKept(Event, frozen=True, kw_only=True):
    """A job completed, and a note is stored instead of its result."""

    job: JobId
    type: str
    attempt: int
    worker: str
    problem: str


class JobRescued(Event, frozen=True, kw_only=True):
    """A job was put back because its runner ended or its lease expired."""

    job: JobId
    type: str
    queue: str
    attempt: int
    status: Status
    outcome: str
    worker: str


class JobsRescued(Event, frozen=True, kw_only=True):
    """One rescue put back too many jobs for an event each."""

    jobs: int
    statuses: tuple[str, ...]
    """Their statuses now."""


class StaleWrite(Event, frozen=True, kw_only=True):
    """An attempt that is no longer the newest tried to write; nothing changed."""

    job: JobId
    attempt: int
    worker: str
    found: str


class StoreFailed(Event, frozen=True, kw_only=True):
    """A call to the store failed; `retried` says whether it is tried again."""

    doing: str
    problem: str
    retried: bool = True


class HintsUnavailable(Event, frozen=True, kw_only=True):
    """No hints reach this worker: its idle runners poll once a second."""

    why: str


class StoreRecovered(Event, frozen=True, kw_only=True):
    """The store answers again."""

    doing: str


class ClockJumped(Event, frozen=True, kw_only=True):
    """The wall clock was set, forwards or back. Leases are not affected; due times and retention are."""

    seconds: float


class LeadershipGained(Event, frozen=True, kw_only=True):
    """This worker is the coordinator now."""

    worker: str
    term: int


class LeadershipLost(Event, frozen=True, kw_only=True):
    """This worker is no longer the coordinator."""

    worker: str
    term: int


class JobsParked(Event, frozen=True, kw_only=True):
    """Jobs of types that no live worker knows were set aside."""

    types: tuple[str, ...]
    jobs: int


class JobsExpired(Event, frozen=True, kw_only=True):
    """Jobs that had not started by their `expires_at` were cancelled."""

    jobs: int


class TicksFired(Event, frozen=True, kw_only=True):
    """Ticks of schedules were due, and their jobs were enqueued."""

    schedules: int
    jobs: int
    late: float = 0.0
    """Seconds from the oldest of these ticks to its job."""


class TicksMissed(Event, frozen=True, kw_only=True):
    """Ticks of schedules passed while no coordinator ran, and by `catch_up` they are not made up."""

    schedules: tuple[str, ...]
    """Some of them."""
    ticks: int
    """At least."""


class TicksSkipped(Event, frozen=True, kw_only=True):
    """Ticks of schedules got no job: the previous job has not ended (`overlap=False`), or the queue is closed."""

    schedules: tuple[str, ...]
    """Some of them."""
    ticks: int


class ScheduleBroken(Event, frozen=True, kw_only=True):
    """A schedule cannot be read here. It is tried again in a minute; other schedules are not affected."""

    schedule: str
    problem: str


class SchedulesUndeclared(Event, frozen=True, kw_only=True):
    """This worker's app does not declare schedules that code declared before; they fire until they are removed."""

    schedules: tuple[str, ...]
    app: str


class JobsAged(Event, frozen=True, kw_only=True):
    """Jobs that waited long got a higher sort priority, because their queue has ageing."""

    jobs: int


class JobsPruned(Event, frozen=True, kw_only=True):
    """Finished jobs whose retention is over were dropped."""

    jobs: int


class BlobsSwept(Event, frozen=True, kw_only=True):
    """Blobs that no job refers to were removed."""

    blobs: int


class DutyFailed(Event, frozen=True, kw_only=True):
    """A coordinator's duty failed; it is tried again at its next turn."""

    duty: str
    problem: str


class HookFailed(Event, frozen=True, kw_only=True):
    """A hook of the app raised or took too long; nothing else is affected."""

    hook: str
    problem: str
    job: JobId | None = None


class InternalError(Event, frozen=True, kw_only=True):
    """Code of Windlass failed unexpectedly: please report it. Its job is put back when its runner has ended."""

    doing: str
    problem: str
    job: JobId | None = None


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """A listener that ignores every event."""
