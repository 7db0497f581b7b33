"""The records of a job: what a producer hands in, what a runner claims, what a person sees.

`NewJob` and `Claimed` are on the hot path: plain values, moments as microseconds, and none of the garbage collector's
business, because nothing in them can lead back to them. `Job` is the public record.
"""

from datetime import datetime
from typing import Any

import msgspec

from windlass.core.idempotency import OnConflict
from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.core.rate import Rate
from windlass.core.status import FINISHED, Status

DEFAULT_QUEUE = "default"
DEFAULT_MAX_ATTEMPTS = 3
MOST_ATTEMPTS = 1000
DEFAULT_TIMEOUT: Micros = 300 * SECOND
NO_TIMEOUT: Micros = 0
"""Stands for `timeout=None`: the attempt may take as long as it likes."""
LOWEST_PRIORITY, HIGHEST_PRIORITY = -32768, 32767
DEFAULT_KEY_LIMIT = 1
MOST_PER_KEY = 10_000
MOST_COST = 1_000_000


Take = tuple[str, JobId]
"""A parameter, and the parent whose result it gets."""


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job as it is handed in: everything is decided except what only the store knows (its clock)."""

    id: JobId
    type: str
    payload: str
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: Micros | None = None
    delay: Micros = 0
    """Counted from the store's clock, of a job with parents from when the last of them completed; `run_at` wins if
    both are given."""
    max_attempts: int | None = None
    """None: what the queue says when the job arrives."""
    idempotency_key: str | None = None
    idempotency_window: Micros | None = None
    """How long the key stays taken after the job ended; None: not at all."""
    on_conflict: OnConflict = OnConflict.EXISTING
    concurrency_key: str | None = None
    key_limit: int | None = None
    """How many with this concurrency key may run at once; None: one."""
    key_strict: bool | None = None
    """Whether those with this key run in the order in which they are due, through retries too."""
    key_rate: Rate | None = None
    """How many with this key may start in a while."""
    rate_cost: int | None = None
    """How many tokens a start costs, of the queue's rate and of the key's; None: one."""
    tenant: str | None = None
    parent: JobId | None = None
    flow: str | None = None
    parents: tuple[JobId, ...] = ()
    """Jobs that must complete before this one may run: known to the store, or before it in the same hand-in."""
    takes: tuple[Take, ...] = ()
    """Parameters that get the results of parents. They are not in the payload."""
    timeout: Micros | None = None
    """None: what the queue says when the job arrives; NO_TIMEOUT: any length."""
    expires: Micros | None = None
    """Counted from the store's clock; `expires_at` wins if both are given."""
    expires_at: Micros | None = None
    tags: tuple[str, ...] = ()
    meta: str | None = None
    schedule: str | None = None
    """Whose job it is, if a schedule handed it in."""
    tick: Micros | None = None
    """For which of its moments; None: somebody ran it at once."""
    fresh: str = ""
    """The process that made the id for this very job, so that nobody else can have handed it in before. In another
    process, to which the job was sent or where it was kept, it says nothing; nor if it is empty."""


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The store's answer for one hand-in: the id of the job that stands, and whether it stood before."""

    id: JobId
    existing: bool = False


class Claimed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job as its runner holds it: `attempt` is the fencing token of everything written about it."""

    id: JobId
    queue: str
    type: str
    payload: str
    attempt: int
    max_attempts: int
    failures: int
    crashes: int
    rescues: int
    suspicions: int
    hand_backs: int
    snoozes: int
    priority: int
    run_at: Micros
    created_at: Micros
    claimed_at: Micros
    idempotency_key: str | None = None
    concurrency_key: str | None = None
    tenant: str | None = None
    parent: JobId | None = None
    flow: str | None = None
    timeout: Micros | None = None
    expires_at: Micros | None = None
    tags: str | None = None
    meta: str | None = None
    takes: str | None = None
    """Which parameters get whose results, as JSON: see core/chain.py."""
    inputs: str | None = None
    """The results of its parents, as JSON of [parent, result as it is stored]."""
    schedule: str | None = None
    tick: Micros | None = None


class JobError(msgspec.Struct, frozen=True):
    """Why an attempt failed: bounded text, safe to store and to show."""

    type: str
    message: str
    traceback: str | None = None


class Attempt(msgspec.Struct, frozen=True):
    """One execution of a job: who held it, when, and how it ended (`running` while it has not)."""

    attempt: int
    outcome: str
    worker: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: JobError | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far a running job says it is."""

    done: float
    total: float | None = None
    note: str | None = None
    at: datetime | None = None


class LogLine(msgspec.Struct, frozen=True):
    """One line a handler logged about its job."""

    at: datetime
    attempt: int
    text: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as people and programs see it; the names are those of REST and `--json`."""

    id: JobId
    queue: str
    type: str
    status: Status
    payload: Any
    reason: str | None = None
    priority: int = 0
    attempt: int = 0
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    failures: int = 0
    crashes: int = 0
    rescues: int = 0
    suspicions: int = 0
    hand_backs: int = 0
    snoozes: int = 0
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    worker: str | None = None
    lease_expires_at: datetime | None = None
    idempotency_key: str | None = None
    idempotency_window: float | None = None
    concurrency_key: str | None = None
    key_limit: int | None = None
    key_strict: bool = False
    key_rate: str | None = None
    rate_cost: int = 1
    tenant: str | None = None
    parent: JobId | None = None
    parents: tuple[JobId, ...] = ()
    """Jobs that must complete, or had to, before this one may run."""
    flow: str | None = None
    timeout: float | None = None
    expires_at: datetime | None = None
    cancel_requested: bool = False
    tags: tuple[str, ...] = ()
    meta: Any = None
    schedule: str | None = None
    tick: datetime | None = None
    progress: Progress | None = None
    result: Any = None
    error: JobError | None = None
    attempts: tuple[Attempt, ...] = ()
    logs: tuple[LogLine, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the job has ended and will not run again by itself."""
        return self.status in FINISHED
