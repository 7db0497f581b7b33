"""What goes into the contract's verbs and what comes out, where it is not a record of core."""

from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Job, LogLine, Progress
from windlass.core.moments import Micros
from windlass.core.status import Status

T = TypeVar("T")


class QueueShare(msgspec.Struct, frozen=True):
    """A queue to claim from, and the most to take from it now."""

    queue: str
    most: int
    held: int = 0
    """How many of its jobs the runner holds: they count in what the queue lets run at once."""


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A claim: `claim` numbers it within its runner, so that repeating it returns the same jobs."""

    runner: str
    claim: int
    shares: tuple[QueueShare, ...]
    """In the order of the worker's own list: an earlier queue is emptied before a later one."""
    types: tuple[str, ...]
    limit: int
    free: int | None = None
    """How many of them can start at once, the rest being claimed ahead; None: all. Where a limit is near, nothing is
    claimed ahead."""


class Settled(StrEnum):
    """What became of one settlement."""

    SETTLED = "settled"
    ALREADY = "already"
    """A repeat: this attempt had been settled just so before."""
    STALE = "stale"
    """Refused: the attempt is not running any more, or was never this one."""


class Held(msgspec.Struct, frozen=True):
    """One running job under a runner's lease."""

    id: JobId
    attempt: int
    queue: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a running attempt says about itself; fenced like a settlement."""

    id: JobId
    queue: str
    attempt: int
    started_after: Micros | None = None
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A new runner's lease, kept alive by its worker's supervisor."""

    runner: str
    worker: str
    length: Micros


class CancelRequest(msgspec.Struct, frozen=True):
    """A running job that somebody wants stopped."""

    id: JobId
    attempt: int
    runner: str


class Renewal(msgspec.Struct, frozen=True):
    """Which leases hold, which are gone for good, and which running jobs were asked to stop."""

    kept: tuple[str, ...]
    lost: tuple[str, ...]
    cancels: tuple[CancelRequest, ...]


class RunnerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor's report that its runner is gone: `started` were in their handlers at that moment."""

    runner: str
    started: frozenset[tuple[JobId, int]]
    returned: frozenset[tuple[JobId, int]] = frozenset()
    """Their handlers had returned, but the outcome did not reach the store: they will run again."""
    crashed: bool
    """False when it was told to stop: what it held is then handed back, not crashed."""


class Rescued(msgspec.Struct, frozen=True):
    """A job that was put back, or to rest, because its runner ended."""

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
    """Which jobs: every field given must match."""

    status: tuple[Status, ...] = ()
    type: str | None = None
    queue: str | None = None
    tenant: str | None = None
    tag: str | None = None
    parent: JobId | None = None
    id_end: str | None = None
    """The last characters of the id."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list, newest first; a page may be short, only `next_cursor=None` means the end."""

    items: tuple[T, ...]
    next_cursor: str | None


JobPage = Page[Job]


class Moved(msgspec.Struct, frozen=True):
    """What an operator's verb did to one job: its status now, and why not if it was refused."""

    id: JobId
    status: Status
    done: bool
    holder: JobId | None = None
    """The job that holds the idempotency key, when a retry or a change was refused for it."""
    parent: JobId | None = None
    """The parent that it waits for in vain, when a retry was refused for it: that one must be retried first."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it registers and beats; the times and what it runs are the store's."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    processes: int
    slots: int
    running: int = 0
    """Jobs that its runners hold now, those that are claimed ahead too: counted as it is listed, not as it beat."""
    per_minute: float = 0.0
    draining: bool = False
    started_at: datetime | None = None
    beat_at: datetime | None = None

    @property
    def busy(self) -> int:
        """Slots in use: what is claimed ahead waits for one."""
        return min(self.running, self.slots)


class Campaign(msgspec.Struct, frozen=True):
    """A bid to be coordinator for a while."""

    candidate: str
    length: Micros


class Counts(msgspec.Struct, frozen=True):
    """Jobs by queue and status, counted exactly."""

    queues: dict[str, dict[str, int]]

    @property
    def totals(self) -> dict[str, int]:
        """Jobs by status over all queues."""
        return {status: sum(q.get(status, 0) for q in self.queues.values()) for status in Status}
