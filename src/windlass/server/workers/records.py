"""Requests and answers of REST workers."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from windlass.core.jobs.job import JobError

MAX_CLAIMED = 100
MAX_NUMBER = 2**32 - 1
"""The largest number of a claim: Redis keeps it in 32 bits."""
MAX_WAIT = 30.0
MAX_QUEUES = 100
MAX_TYPES = 1_000
MAX_SLOTS = 10_000
MAX_SETTLED = 1_000
MAX_NOTES = 1_000
MAX_CRASHED = 10_000
MAX_LINES = 200
"""Log lines in one note."""


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A claim. `claim` numbers the claims of a worker: the same number again returns the same jobs."""

    worker: str
    claim: int
    queues: list[str]
    types: list[str]
    limit: int = 1
    """0: open or renew the lease, and claim nothing."""
    limits: dict[str, int] = {}
    """By queue, the maximum of jobs to claim from it now; other queues have only `limit`."""
    wait: float = 0.0
    """Seconds to wait for a job if there is none."""
    slots: int = 1
    """How many jobs it runs at once: for display."""
    host: str = ""
    """Where it runs: for display."""


class ClaimedJob(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A job to run. Every call about it names its `attempt`."""

    id: str
    type: str
    queue: str
    attempt: int
    max_attempts: int
    payload: msgspec.Raw
    priority: int
    created_at: datetime
    run_at: datetime
    timeout: float | None = None
    """Seconds after which the worker ends the attempt as failed; null: no limit."""
    expires_at: datetime | None = None
    tenant: str | None = None
    parent: str | None = None
    flow: str | None = None
    tags: tuple[str, ...] = ()
    meta: Any = None
    traceparent: str | None = None
    schedule: str | None = None
    tick: datetime | None = None
    idempotency_key: str | None = None
    concurrency_key: str | None = None
    claimed_at: datetime | None = None
    failures: int = 0
    crashes: int = 0
    rescues: int = 0
    suspicions: int = 0
    requeues: int = 0
    snoozes: int = 0


class LeaseAnswer(msgspec.Struct, kw_only=True):
    """The lease of the worker."""

    lease_expires_at: datetime
    """By the server's clock."""
    lease: float
    """The same in seconds, from when the request was sent: clocks differ."""
    beat_after: float
    """Seconds after which the next beat is due; an open claim counts as one."""


class ClaimAnswer(LeaseAnswer, kw_only=True):
    """The claimed jobs, the highest priority first; none if there was none within `wait`."""

    jobs: list[ClaimedJob]


class NoteBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Progress and log lines of a running attempt."""

    id: str
    attempt: int
    done: float | None = None
    total: float | None = None
    note: str | None = None
    lines: list[str] = []


class BeatBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A beat, with notes of running attempts."""

    worker: str
    notes: list[NoteBody] = []


class AttemptRef(msgspec.Struct, forbid_unknown_fields=True):
    """An attempt of a job."""

    id: str
    attempt: int


class BeatAnswer(LeaseAnswer, kw_only=True):
    """The renewed lease, and the attempts to cancel."""

    cancels: list[AttemptRef]
    """Stop these, and settle them as `cancelled`."""


Outcome = Literal["completed", "failed", "snoozed", "cancelled", "dead", "requeued", "crashed"]


class SettlementBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How an attempt ended."""

    id: str
    attempt: int
    outcome: Outcome
    result: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={})] | UnsetType = UNSET
    error: JobError | None = None
    """Of a failed or dead one."""
    after: float | None = None
    """Seconds until the next attempt, of a failed or snoozed one; null: by the retry policy."""
    reason: str | None = None
    """Of a dead or cancelled one."""


class SettleBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Settlements, each recorded independently of the others."""

    worker: str
    settlements: list[SettlementBody]
    claim: ClaimBody | None = None
    """The worker's next claim, made after the settlements."""


class ItemAnswer(StrEnum):
    """The answer to one settlement."""

    SETTLED = "settled"
    ALREADY = "already"
    STALE = "stale"
    INVALID = "invalid"


class SettledItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of one settlement; `invalid` ones say why, and may be sent again corrected."""

    id: str
    attempt: int
    answer: ItemAnswer
    problem: str | None = None


class SettleAnswer(msgspec.Struct, omit_defaults=True):
    """In the order of the request; `claimed` answers its claim."""

    settlements: list[SettledItem]
    claimed: ClaimAnswer | None = None


class EndBody(msgspec.Struct, forbid_unknown_fields=True):
    """A worker that stops."""

    worker: str
    crashed: list[AttemptRef] = []
    """Attempts that ran when the worker's process died, as its parent process reports."""


class HeldJob(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An attempt that a worker holds."""

    id: str
    attempt: int
    queue: str
    claim: int
    """The number of the claim that took it: repeating that returns the job, with its payload."""
    type: str = ""
    max_attempts: int = 0
    failures: int = 0
    crashes: int = 0
    timeout: float | None = None


class HeldAnswer(msgspec.Struct):
    """The attempts that a worker holds, according to the store."""

    jobs: list[HeldJob]


class WorkerRules(msgspec.Struct, kw_only=True):
    """The rules of a server for workers."""

    lease: float
    """Seconds without a call after which a worker counts as dead."""
    beat_after: float
    max_limit: int
    """Jobs in one claim."""
    max_wait: float
    max_settlements: int
    retry: dict[str, Any]
    """By queue, the retry policy of jobs that have no other; queues with the default one are left out."""
