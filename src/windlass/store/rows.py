"""Rows → the public record."""

from typing import Any

import msgspec

from windlass.core.codec import UNREADABLE, readable, readable_tags, readable_value
from windlass.core.job import DEFAULT_KEY_LIMIT, Attempt, Job, JobError
from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.status import Status
from windlass.store.attempts import attempts_of, last_attempt
from windlass.store.notes import notes_of

SHARED = (
    "id, queue, type, payload, status, reason, urgency, attempt, max_attempts, failures, crashes, rescues, "
    "suspicions, hand_backs, snoozes, run_at, created_at, updated_at, claimed_at, started_at, worker, "
    "idempotency_key, concurrency_key, tenant, parent, flow, timeout, expires_at, cancel_requested, tags, meta, "
    "error, attempts, idempotency_window, key_limit, key_strict, key_rate, rate_cost, parents, "
    "schedule, tick"
)
"""The columns that live and finished jobs have in common."""

_AS_HANDED_IN = SHARED.replace("urgency", "urgency + aged_by AS urgency")
LIVE_COLUMNS = f"{_AS_HANDED_IN}, NULL AS finished_at, NULL AS result"
FINISHED_COLUMNS = f"{SHARED}, finished_at, result"

_NAMES = [*SHARED.split(", "), "finished_at", "result"]
WORKER = _NAMES.index("worker")
_error = msgspec.json.Decoder(JobError)
_MOMENTS = ("run_at", "created_at", "updated_at", "claimed_at", "started_at", "finished_at", "expires_at", "tick")


def to_job(row: tuple[Any, ...], notes: tuple[Any, ...] | None = None, lease_ends: Micros | None = None) -> Job:
    """A row of LIVE_COLUMNS or FINISHED_COLUMNS as a Job."""
    fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    fields["attempts"] = _attempts(fields)
    fields["priority"] = -fields.pop("urgency")
    fields["status"] = Status(fields["status"])
    fields["cancel_requested"] = bool(fields["cancel_requested"])
    fields["key_strict"] = bool(fields["key_strict"])
    fields["rate_cost"] = fields["rate_cost"] or 1
    if fields["concurrency_key"] is not None:
        fields["key_limit"] = fields["key_limit"] or DEFAULT_KEY_LIMIT
    fields["timeout"] = fields["timeout"] / SECOND if fields["timeout"] else None
    window = fields["idempotency_window"]
    fields["idempotency_window"] = window / SECOND if window else None
    for name in _MOMENTS:
        fields[name] = _moment(fields[name])
    fields["meta"] = None if fields["meta"] is None else readable(fields["meta"])
    for name in ("payload", "result"):
        fields[name] = None if fields[name] is None else readable_value(fields[name])
    for name in ("tags", "parents"):
        fields[name] = readable_tags(fields[name])
    fields["error"] = _error_of(fields["error"])
    fields["progress"], fields["logs"] = notes_of(*notes) if notes else (None, ())
    fields["lease_expires_at"] = _moment(lease_ends)
    return Job(**fields)


def _attempts(fields: dict[str, Any]) -> tuple[Attempt, ...]:
    rows = attempts_of(fields["attempts"])
    if (newest := last_attempt(fields)) is not None:
        rows = [*rows, newest]
    return tuple(
        Attempt(
            attempt=row.attempt,
            outcome=row.outcome,
            worker=row.worker,
            claimed_at=_moment(row.claimed_at),
            started_at=_moment(row.started_at),
            ended_at=_moment(row.ended_at),
            error=row.error,
        )
        for row in rows
    )


def _error_of(stored: Any) -> JobError | None:
    try:
        return _error.decode(stored) if stored else None
    except UNREADABLE:
        return JobError("unreadable", str(readable(stored)))


def _moment(micros: Micros | None) -> Any:
    return None if micros is None else to_datetime(micros)
