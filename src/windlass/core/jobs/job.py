"""The records of a job: what a producer enqueues, what a runner claims, what people read.

`NewJob` and `Claimed` are on the hot path: plain values, moments as microseconds, not tracked by the garbage
collector (they cannot be part of a cycle). `Job` is the public record.
"""

from datetime import datetime
from typing import Any, Self

import msgspec

from windlass.core.flow.rate import Rate
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.status import FINISHED, Status

DEFAULT_QUEUE = "default"
DEFAULT_MAX_ATTEMPTS = 3
MAX_ATTEMPTS = 1000
DEFAULT_TIMEOUT: Micros = 300 * SECOND
NO_TIMEOUT: Micros = 0
"""Stands for `timeout=None`: an attempt of any length."""
MIN_PRIORITY, MAX_PRIORITY = -32768, 32767
DEFAULT_KEY_LIMIT = 1
MAX_PER_KEY = 10_000
MAX_COST = 1_000_000


ResultParam = tuple[str, JobId]
"""A parameter, and the parent whose result it gets."""


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job to be enqueued: complete except for the fields that the store's clock decides."""

    id: JobId
    type: str
    payload: str
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: Micros | None = None
    delay: Micros = 0
    """Counted from the store's clock or, with parents, from the end of the last of them; `run_at` wins if both
    are given.
    """
    max_attempts: int | None = None
    """None: the queue's setting when the job is stored."""
    idempotency_key: str | None = None
    idempotency_window: Micros | None = None
    """How long the key is taken after the job ended; None: not at all."""
    on_conflict: OnConflict = OnConflict.EXISTING
    concurrency_key: str | None = None
    key_limit: int | None = None
    """How many jobs with this concurrency key may run at once; None: one."""
    key_strict: bool | None = None
    """Whether the jobs with this key run in the order in which they are due, through retries too."""
    key_rate: Rate | None = None
    """The rate at which jobs with this key may start."""
    rate_cost: int | None = None
    """The tokens that a start costs, of the queue's rate and of the key's; None: one."""
    tenant: str | None = None
    parent: JobId | None = None
    flow: str | None = None
    parents: tuple[JobId, ...] = ()
    """Jobs that this one waits for: in the store, or earlier in the same batch."""
    when_ended: bool = False
    """Whether it may run once its parents have ended with any status; else they must complete."""
    result_params: tuple[ResultParam, ...] = ()
    """Parameters that get the results of parents. They are not in the payload."""
    timeout: Micros | None = None
    """None: the queue's setting when the job is stored; NO_TIMEOUT: any length."""
    expires: Micros | None = None
    """Counted from the store's clock; `expires_at` wins if both are given."""
    expires_at: Micros | None = None
    tags: tuple[str, ...] = ()
    meta: str | None = None
    schedule: str | None = None
    """The schedule that enqueued it, if any."""
    tick: Micros | None = None
    """The tick that it is for; None: run by hand."""
    fresh: str = ""
    """The process that made the id for this job, so that no store has it yet. Ignored if empty, and in other
    processes.
    """


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The store's answer for one job: the id of the stored job, and whether it existed before."""

    id: JobId
    existing: bool = False


class Claimed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A claimed job; `attempt` is the fencing token of everything written about it."""

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
    requeues: int
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
    result_params: str | None = None
    """Which parameters get which parent's result, as JSON: see `dependencies`."""
    parent_results: str | None = None
    """The results of its parents, as JSON of [parent, stored result]."""
    schedule: str | None = None
    tick: Micros | None = None


class JobError(msgspec.Struct, frozen=True):
    """Why an attempt failed: bounded text, safe to store and to show."""

    type: str
    message: str
    traceback: str | None = None


class Attempt(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One attempt of a job: its runner, its times, and how it ended (`running` while it has not)."""

    attempt: int
    outcome: str
    worker: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: JobError | None = None


class Progress(msgspec.Struct, frozen=True):
    """The progress that a running job reported."""

    done: float
    total: float | None = None
    note: str | None = None
    at: datetime | None = None


class LogLine(msgspec.Struct, frozen=True):
    """One line that a handler logged about its job."""

    at: datetime
    attempt: int
    text: str


class Job(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The public record of a job; the names are those of REST and `--json`."""

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
    requeues: int = 0
    snoozes: int = 0
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    version: str = ""
    """Changes with every change of the job; a verb with a version changes nothing if the job has another one."""
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    worker: str | None = None
    """The id of its runner: that of the worker, as `windlass workers list` shows it, and a number."""
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
    """Jobs that must complete before this one may run."""
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
        """Whether the job is completed, dead or cancelled."""
        return self.status in FINISHED

    def without_note(self) -> Self:
        """Without the note that its handler wrote with its progress."""
        if self.progress is None or self.progress.note is None:
            return self
        return msgspec.structs.replace(self, progress=msgspec.structs.replace(self.progress, note=None))


SAME_FIELDS = tuple(name for name, kind in Claimed.__annotations__.items() if Job.__annotations__.get(name) == kind)
"""Fields that a claimed job and the public record share."""


def to_claimed(job: Job) -> Claimed:
    """A running job as a claimed one, with the fields that decisions need."""
    fields = {name: getattr(job, name) for name in SAME_FIELDS}
    return Claimed(
        **fields,
        payload="",
        run_at=to_micros(job.run_at),
        created_at=to_micros(job.created_at),
        claimed_at=to_micros(job.claimed_at or job.created_at),
        meta=None if job.meta is None else msgspec.json.encode(job.meta).decode(),
    )
