"""Claimed jobs and settlements, from and to the records of the REST server."""

import msgspec
from msgspec import UNSET, Raw

from windlass.core.jobs.job import NO_TIMEOUT, SAME_FIELDS, Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND, to_micros
from windlass.core.status import Status
from windlass.server.workers.records import MAX_LINES, ClaimedJob, NoteBody, Outcome, SettlementBody
from windlass.store.records import Note

_ENDINGS: dict[Status, Outcome] = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.DEAD: "dead",
    Status.CANCELLED: "cancelled",
    Status.SCHEDULED: "snoozed",
    Status.PENDING: "requeued",
}


def claimed_of(job: ClaimedJob) -> Claimed:
    """A job for a runner; its payload has the results of its parents already."""
    return Claimed(
        **{name: getattr(job, name) for name in SAME_FIELDS},
        payload=bytes(job.payload).decode(),
        run_at=to_micros(job.run_at),
        created_at=to_micros(job.created_at),
        claimed_at=to_micros(job.claimed_at or job.run_at),
        timeout=NO_TIMEOUT if job.timeout is None else round(job.timeout * SECOND),
        expires_at=None if job.expires_at is None else to_micros(job.expires_at),
        tags=msgspec.json.encode(job.tags).decode() if job.tags else None,
        meta=None if job.meta is None else msgspec.json.encode(job.meta).decode(),
        tick=None if job.tick is None else to_micros(job.tick),
    )


def settlement_body(settlement: Settlement) -> SettlementBody:
    """A settlement as the server takes it; the server decides again what becomes of the job."""
    outcome = "crashed" if settlement.crashes else _ENDINGS[settlement.status]
    if settlement.requeues:
        outcome = "requeued"
    result = settlement.result
    return SettlementBody(
        id=settlement.id,
        attempt=settlement.attempt,
        outcome=outcome,
        result=Raw(result.encode()) if outcome == "completed" and result is not None else UNSET,
        error=settlement.error,
        after=settlement.delay / SECOND if outcome in ("failed", "snoozed") else None,
        reason=settlement.reason,
    )


def refused_body(body: SettlementBody, problem: str) -> SettlementBody:
    """A failed attempt, instead of a settlement that the server refused as invalid."""
    error = {"type": "InvalidSettlement", "message": problem}
    return msgspec.convert(
        {"id": body.id, "attempt": body.attempt, "outcome": "failed", "error": error}, SettlementBody
    )


def note_body(note: Note) -> NoteBody:
    """Progress and lines; the server adds the time."""
    progress = note.progress
    return NoteBody(
        id=note.id,
        attempt=note.attempt,
        done=None if progress is None else progress.done,
        total=None if progress is None else progress.total,
        note=None if progress is None else progress.note,
        lines=[line.text for line in note.lines[-MAX_LINES:]],
    )
