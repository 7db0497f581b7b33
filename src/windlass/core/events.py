"""What happens, as frozen records: the one vocabulary of logs and, later, metrics, traces and streams.

Services emit, listeners listen; nobody waits for a listener.
"""

from collections.abc import Callable

import msgspec

from windlass.core.ids import JobId
from windlass.core.status import Status


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The root of all events."""


class WorkerStarted(Event, frozen=True, kw_only=True):
    """A worker registered and its supervisor beats."""

    worker: str
    processes: int
    concurrency: int
    queues: tuple[str, ...]
    store: str


class WorkerStopped(Event, frozen=True, kw_only=True):
    """A worker signed off."""

    worker: str
    code: int


class RunnerStarted(Event, frozen=True, kw_only=True):
    """A runner process holds a lease and claims."""

    runner: str
    pid: int


class RunnerEnded(Event, frozen=True, kw_only=True):
    """A runner process is gone; `expected` if it was told to go."""

    runner: str
    pid: int
    status: str
    expected: bool


class RunnerBlocked(Event, frozen=True, kw_only=True):
    """A runner's loop does not turn: a handler holds it. Its leases are kept, its prefetched jobs handed back."""

    runner: str
    pid: int
    seconds: float
    jobs: tuple[JobId, ...]
    where: str


class RunnerHung(Event, frozen=True, kw_only=True):
    """A runner was ended because a handler held its loop beyond its timeout."""

    runner: str
    pid: int
    jobs: tuple[JobId, ...]
    where: str


class JobOverdue(Event, frozen=True, kw_only=True):
    """A handler was told to end and does not: its runner takes no more work, and ends with it."""

    job: JobId
    type: str
    attempt: int
    worker: str
    why: str
    seconds: float


class DrainStarted(Event, frozen=True, kw_only=True):
    """No more claims; running jobs get the drain time."""

    worker: str
    seconds: float
    empty: bool = False
    """Nobody asked for it: with `--until-empty`, nothing is left to do."""


class LeaseExpired(Event, frozen=True, kw_only=True):
    """A runner's lease could not be renewed: it goes on under a new id."""

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


class JobRescued(Event, frozen=True, kw_only=True):
    """A job was put back because its runner ended or fell silent."""

    job: JobId
    type: str
    queue: str
    attempt: int
    status: Status
    outcome: str
    worker: str


class JobsRescued(Event, frozen=True, kw_only=True):
    """More jobs were put back, by the same look at who is gone, than are worth an event each."""

    jobs: int
    statuses: tuple[str, ...]
    """What they are now."""


class StaleWrite(Event, frozen=True, kw_only=True):
    """An attempt that is no longer the newest tried to write; nothing changed."""

    job: JobId
    attempt: int
    worker: str
    found: str


class StoreTrouble(Event, frozen=True, kw_only=True):
    """A call to the store failed and will be repeated."""

    doing: str
    problem: str


class HintsSilent(Event, frozen=True, kw_only=True):
    """No notification tells this worker of new jobs: its idle runners look for them once a second."""

    why: str


class StoreBack(Event, frozen=True, kw_only=True):
    """The store answers again."""

    doing: str


class ClockJumped(Event, frozen=True, kw_only=True):
    """The wall clock was set, forwards or back. Leases do not notice; due times and retention follow it."""

    seconds: float


class TermStarted(Event, frozen=True, kw_only=True):
    """This worker is the coordinator now."""

    worker: str
    term: int


class TermEnded(Event, frozen=True, kw_only=True):
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
    """Moments of schedules have come, and their jobs were handed in."""

    schedules: int
    jobs: int
    late: float = 0.0
    """Seconds from the oldest of these ticks to when it was seen to."""


class TicksMissed(Event, frozen=True, kw_only=True):
    """Moments of schedules had passed when nobody was there; `catch_up` said not to make up for so many."""

    schedules: tuple[str, ...]
    """Some of them."""
    ticks: int
    """At least."""


class TicksSkipped(Event, frozen=True, kw_only=True):
    """Moments of schedules got no job: the one before has not ended (`overlap=False`), or the queue is closed."""

    schedules: tuple[str, ...]
    """Some of them."""
    ticks: int


class ScheduleBroken(Event, frozen=True, kw_only=True):
    """A schedule cannot be read here; the others go on, and it is tried again in a minute."""

    schedule: str
    problem: str


class JobsAged(Event, frozen=True, kw_only=True):
    """Jobs that have waited long moved up to a higher priority, because their queue says so."""

    jobs: int


class JobsPruned(Event, frozen=True, kw_only=True):
    """Finished jobs whose retention time is over were dropped."""

    jobs: int


class BlobsSwept(Event, frozen=True, kw_only=True):
    """Blobs that no job refers to any longer were removed."""

    blobs: int


class DutyFailed(Event, frozen=True, kw_only=True):
    """A coordinator's duty failed; it is tried again at its next turn."""

    duty: str
    problem: str


class HookFailed(Event, frozen=True, kw_only=True):
    """A hook of the app raised or took too long; nothing else changes by that."""

    hook: str
    problem: str
    job: JobId | None = None


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """A listener that does not care."""
