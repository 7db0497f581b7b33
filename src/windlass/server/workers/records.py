"""What REST workers send and get."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from windlass.core.jobs.job import JobError
from windlass.store.records import Held

MAX_CLAIMED = 100
MAX_NUMBER = 2**32 - 1
"""The largest number of a claim: Redis keeps it in 32 bits."""
MAX_WAIT = 30.0
MAX_QUEUES = 100
MAX_TYPES = 1_000
MAX_SLOTS = 10_000
MAX_SETTLED = 1_000
MAX_NOTES = 1_000
MAX_LINES = 200
"""Log lines in one note."""


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A claim. `claim` numbers the claims of a worker: the same number again returns the same jobs."""

    worker: str
    claim: int
    queues: list[str]
    types: list[str]
    limit: int = 1
    wait: float = 0.0
    """Seconds to wait for a job if there is none."""
    slots: int = 1
    """How many jobs it runs at once: shown to people."""
    host: str = ""
    """Where it runs: shown to people."""


class ClaimedJob(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A job to run. `attempt` goes into everything that is said of it."""

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
    """Seconds after which the worker ends the attempt as failed; None: any length."""
    expires_at: datetime | None = None
    tenant: str | None = None
    parent: str | None = None
    flow: str | None = None
    tags: tuple[str, ...] = ()
    meta: Any = None
    traceparent: str | None = None
    schedule: str | None = None
    tick: datetime | None = None


class LeaseAnswer(msgspec.Struct, kw_only=True):
    """How long the worker's jobs are its own."""

    lease_expires_at: datetime
    beat_after: float
    """Seconds after which the next beat is due; an open claim counts as one."""


class ClaimAnswer(LeaseAnswer, kw_only=True):
    """The claimed jobs, best first; none if none came within the wait."""

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
    """A sign of life, with news of running attempts."""

    worker: str
    notes: list[NoteBody] = []


class CancelledAttempt(msgspec.Struct):
    """A running attempt that is to be cancelled: stop it, and settle it as `cancelled`."""

    id: str
    attempt: int


class BeatAnswer(LeaseAnswer, kw_only=True):
    """The renewed lease, and what is to be cancelled."""

    cancels: list[CancelledAttempt]


Outcome = Literal["completed", "failed", "snoozed", "cancelled", "dead", "requeued"]


class SettlementBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How an attempt ended."""

    id: str
    attempt: int
    outcome: Outcome
    result: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={})] | UnsetType = UNSET
    error: JobError | None = None
    """Of a failed or dead one."""
    after: float | None = None
    """Seconds until the next attempt, of a failed or snoozed one; None: by the retry policy."""
    reason: str | None = None
    """Of a dead or cancelled one."""


class SettleBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Settlements, each for itself."""

    worker: str
    settlements: list[SettlementBody]


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


class SettleAnswer(msgspec.Struct):
    """In the order of the request."""

    settlements: list[SettledItem]


class EndBody(msgspec.Struct, forbid_unknown_fields=True):
    """A worker that stops."""

    worker: str


class HeldAnswer(msgspec.Struct):
    """The attempts that a worker holds, as the store has it. Their payloads come by repeating the claims."""

    jobs: list[Held]
