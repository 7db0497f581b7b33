"""Arguments and answers of the contract's verbs that are not records of core."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Generic, TypeVar, overload

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, JobError, LogLine, Progress
from windlass.core.moments import Micros
from windlass.core.search import Contains
from windlass.core.status import Status
from windlass.errors import StoreUnavailable

T = TypeVar("T")


class QueueQuota(msgspec.Struct, frozen=True):
    """A queue to claim from, and the maximum to claim from it now."""

    queue: str
    limit: int
    held: int = 0
    """How many jobs of the queue the runner holds: they count towards its limit."""


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A claim: `claim` numbers it within its runner, so that repeating it returns the same jobs."""

    runner: str
    claim: int
    quotas: tuple[QueueQuota, ...]
    """In the order of the worker's list: an earlier queue is emptied before a later one."""
    types: tuple[str, ...]
    limit: int
    free: int | None = None
    """How many of the jobs can start at once; near a limit of a queue no more are claimed. None: all."""
    shared: bool = False
    """Whether several processes claim for this runner: no single process then sees all of its claims."""


class Settled(StrEnum):
    """The answer to one settlement."""

    SETTLED = "settled"
    ALREADY = "already"
    """A repeat: this settlement was recorded before."""
    STALE = "stale"
    """Refused: the attempt is not running any more, or never was."""


class Held(msgspec.Struct, frozen=True):
    """One running job under a runner's lease."""

    id: JobId
    attempt: int
    queue: str
    claim: int
    """The number of the claim that took it: repeating that returns the job."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Progress and log lines of a running attempt; fenced like a settlement."""

    id: JobId
    queue: str
    attempt: int
    started_after: Micros | None = None
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A new runner's lease, renewed by its worker's supervisor."""

    runner: str
    worker: str
    length: Micros


class CancelRequest(msgspec.Struct, frozen=True):
    """A running job that is to be cancelled."""

    id: JobId
    attempt: int
    runner: str


class Renewal(msgspec.Struct, frozen=True):
    """Which leases are valid, and which are gone."""

    kept: tuple[str, ...]
    lost: tuple[str, ...]


class RunnerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor's report that its runner has ended: `started` were in their handlers at that moment."""

    runner: str
    started: frozenset[tuple[JobId, int]]
    returned: frozenset[tuple[JobId, int]] = frozenset()
    """Jobs whose handlers had returned, but whose outcome did not reach the store: they will run again."""
    crashed: bool
    """False if it was stopped on purpose: its jobs are then requeued, and no crash is counted."""
    expired: bool = False
    """Whether its lease had expired: its jobs are then rescued, whatever had started."""


class Rescued(msgspec.Struct, frozen=True):
    """A job that was put back, or ended, because its runner ended."""

    id: JobId
    type: str
    queue: str
    attempt: int
    status: Status
    outcome: str
    runner: str


class Admitted(msgspec.Struct, frozen=True):
    """How many jobs became pending, and when the next one is due (None: none waits)."""

    jobs: int
    next_due_in: Micros | None


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter: every given field must match."""

    status: tuple[Status, ...] = ()
    type: str | None = None
    queue: str | None = None
    tenant: str | None = None
    tag: str | None = None
    parent: JobId | None = None
    schedule: str | None = None
    id_end: str | None = None  # the last characters of the id
    id_before: JobId | None = None  # no store reads beyond it
    contains: tuple[Contains, ...] = ()
    """Texts in fields; a job whose text is not as Windlass stores it may be left out."""
    queues: tuple[str, ...] = ()
    """In one of these; none: in any."""
    types: tuple[str, ...] = ()


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list, newest first: a sequence of its items.

    A page may be short or empty; only `next_cursor=None` means the end.
    """

    items: tuple[T, ...]
    next_cursor: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice, /) -> T | tuple[T, ...]:
        return self.items[index]


JobPage = Page[Job]


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended, for listeners: without payload and result."""

    id: JobId
    queue: str
    type: str
    status: Status
    attempt: int
    at: Micros
    started_at: Micros | None = None
    tenant: str | None = None
    schedule: str | None = None
    tags: tuple[str, ...] = ()
    reason: str | None = None
    error: JobError | None = None


class Ends(msgspec.Struct, frozen=True):
    """Jobs that ended, in the order of their ends, and the store's clock before they were read."""

    now: Micros
    ends: tuple[JobEnd, ...]


FailureKey = tuple[Micros, JobId]
"""The moment of a failure and its job: a position in the list of failures."""
NEWEST: FailureKey = (2**52, "ffffffff-ffff-ffff-ffff-ffffffffffff")


class Transition(msgspec.Struct, frozen=True):
    """What an operator's verb did to one job: its status now, and why it was refused."""

    id: JobId
    status: Status
    done: bool
    holder: JobId | None = None
    """The job that holds the idempotency key, if a retry or change was refused for it."""
    parent: JobId | None = None
    """The parent that must be retried first, if a retry was refused for it."""
    stale: bool = False
    """Whether it was refused because the job has another version than the call asked for."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it registers; times and running jobs are added by the store."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    processes: int
    slots: int
    running: int = 0
    """Jobs that its runners hold, also prefetched ones, at the time of listing."""
    per_minute: float = 0.0
    draining: bool = False
    parameters: dict[str, tuple[str, ...]] = {}
    """Parameters by type, for types that have any; `**` stands for any name."""
    memory: int | None = None
    """Bytes of memory of its processes at the last beat, with shared ones counted for each; None: unknown."""
    rest: bool = False
    """Whether it works through a REST server, which registers it."""
    started_at: datetime | None = None
    beat_at: datetime | None = None

    def takes(self, queue: str, type_: str, arguments: Iterable[str]) -> bool:
        """Whether it serves the queue, and its version of the task has these parameters."""
        known = self.parameters.get(type_, ())
        return queue in self.queues and not self.draining and ("**" in known or set(arguments) <= set(known))

    @property
    def busy(self) -> int:
        """Slots in use, without prefetched jobs."""
        return min(self.running, self.slots)


def known_types(workers: Iterable[WorkerInfo]) -> tuple[str, ...]:
    """The types that at least one of these workers knows, each once."""
    return tuple(dict.fromkeys(type_ for worker in workers for type_ in worker.types))


class Campaign(msgspec.Struct, frozen=True):
    """A candidacy for coordinator."""

    candidate: str
    length: Micros


class Counts(msgspec.Struct, frozen=True):
    """Jobs by queue and status, exact: `counts["mail"]["pending"]`. Iterating gives the names of the queues."""

    queues: dict[str, dict[str, int]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.queues)

    def __len__(self) -> int:
        return len(self.queues)

    def __getitem__(self, queue: str, /) -> dict[str, int]:
        return self.queues[queue]

    @property
    def totals(self) -> dict[str, int]:
        """Jobs by status, over all queues."""
        return {status: sum(q.get(status, 0) for q in self.queues.values()) for status in Status}


class RowsHeld(StoreUnavailable):
    """The call waited too long for rows that another transaction holds. Smaller parts may succeed."""


class ProcessRole(Enum):
    """The kind of process that a store is opened for."""

    CLIENT = auto()
    """Enqueues and reads; the default."""
    RUNNER = auto()
    """Runs handlers."""
    COORDINATOR = auto()
    """Does the duties without running jobs."""
    SUPERVISOR = auto()
    """Manages runners, and receives hints for them."""
