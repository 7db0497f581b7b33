"""How an attempt ends, one job at a time: the path of everything that is not a plain completion."""

from typing import Any

import msgspec

from windlass.core.codec import UNREADABLE
from windlass.core.expiry import EXPIRED, spoils
from windlass.core.job import JobError
from windlass.core.moments import Micros
from windlass.core.outcome import Fate, Settlement
from windlass.core.queue import DEFAULT_RETENTION
from windlass.core.status import FINISHED, Status
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.keys import Keyed, release
from windlass.store.sqlite.prune import drop

MOST_ATTEMPTS_KEPT = 50
"""Older attempts of a job are forgotten first; the counters still tell how many there were."""


class AttemptRow(msgspec.Struct, frozen=True, omit_defaults=True, rename={"attempt": "n"}):
    """One ended attempt, as kept with its job; moments as the store counts them."""

    attempt: int
    outcome: str
    worker: str | None = None
    claimed_at: Micros | None = None
    started_at: Micros | None = None
    ended_at: Micros | None = None
    error: JobError | None = None


class Running(msgspec.Struct, frozen=True):
    """What ending an attempt needs to know of its job."""

    id: str
    queue: str
    type: str
    attempt: int
    max_attempts: int
    failures: int
    crashes: int
    worker: str | None
    claimed_at: Micros | None
    started_at: Micros | None
    cancel_requested: int
    reason: str | None
    idempotency_key: str | None
    attempts: str | None
    idempotency_window: Micros | None
    expires_at: Micros | None


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one ending, whoever reports them."""

    status: Status
    outcome: str
    reason: str | None = None
    delay: Micros = 0
    result: str | None = None
    error: JobError | None = None
    failures: int = 0
    crashes: int = 0
    rescues: int = 0
    suspicions: int = 0
    hand_backs: int = 0
    snoozes: int = 0
    started_after: Micros | None = None


def settled(settlement: Settlement) -> Ending:
    """The ending that a runner reports."""
    return Ending(
        status=settlement.status,
        outcome=settlement.outcome,
        reason=settlement.reason,
        delay=settlement.delay,
        result=settlement.result,
        error=settlement.error,
        failures=settlement.failures,
        crashes=settlement.crashes,
        hand_backs=settlement.hand_backs,
        snoozes=settlement.snoozes,
        started_after=settlement.started_after,
    )


def fated(fate: Fate) -> Ending:
    """The ending of an attempt whose runner is gone."""
    return Ending(
        status=fate.status,
        outcome=fate.outcome,
        reason=fate.reason,
        crashes=fate.crashes,
        rescues=fate.rescues,
        suspicions=fate.suspicions,
        hand_backs=fate.hand_backs,
    )


def end(db: Db, job: Running, ending: Ending) -> Status:
    """Apply the ending: into history if it is final, else back among the waiting. The status it has now."""
    if job.cancel_requested and ending.status not in (Status.COMPLETED, Status.DEAD):
        # A retry that nobody wants any more is a cancellation too. Why: as the handler says it, else whoever asked.
        said = ending.reason if ending.status is Status.CANCELLED else None
        ending = msgspec.structs.replace(ending, status=Status.CANCELLED, reason=said or job.reason)
    elif spoils(ending.status, job.expires_at, db.now):
        ending = msgspec.structs.replace(ending, status=Status.CANCELLED, reason=EXPIRED)
    if ending.status in FINISHED:
        _finish(db, job, ending)
    else:
        _put_back(db, job, ending)
    return ending.status


def _put_back(db: Db, job: Running, ending: Ending) -> None:
    name = "put_back" if ending.status is Status.PENDING else "put_off"
    values = _values(db, job, ending)
    # Handed-back and rescued jobs keep their rank: they lose no place to those that came after them.
    values["run_at"] = values["now"] + ending.delay
    db.run(name, values)


def _finish(db: Db, job: Running, ending: Ending) -> None:
    values = _values(db, job, ending)
    values["result"] = ending.result
    values["keep"] = retention(db, job.queue, ending.status)
    db.run("finish", values)
    db.run("drop_live", values)
    db.tally(job.queue, ending.status, 1)
    if job.idempotency_key is not None:
        release(db, [Keyed(job.id, job.queue, job.idempotency_key, job.idempotency_window)])
    if values["keep"] == 0:
        drop(db, [job.id])


def retention(db: Db, queue: str, status: Status) -> Micros:
    """How long a job of this queue is kept after it ended so."""
    rows = db.rows("retention", {"queue": queue})
    if not rows:
        return DEFAULT_RETENTION[status]
    kept = dict(zip((Status.COMPLETED, Status.CANCELLED, Status.DEAD), rows[0], strict=True))
    return int(kept[status])


def _values(db: Db, job: Running, ending: Ending) -> dict[str, Any]:
    now = db.now
    started_at = job.started_at
    if ending.started_after is not None and job.claimed_at is not None:
        started_at = job.claimed_at + ending.started_after
    entry = AttemptRow(
        attempt=job.attempt,
        outcome=ending.outcome,
        worker=job.worker,
        claimed_at=job.claimed_at,
        started_at=started_at,
        ended_at=now,
        error=ending.error,
    )
    return {
        "id": job.id,
        "now": now,
        "status": str(ending.status),
        "reason": ending.reason,
        "started_at": started_at,
        "error": msgspec.json.encode(ending.error).decode() if ending.error else None,
        "attempts": add_attempt(job.attempts, entry),
        "failures": ending.failures,
        "crashes": ending.crashes,
        "rescues": ending.rescues,
        "suspicions": ending.suspicions,
        "hand_backs": ending.hand_backs,
        "snoozes": ending.snoozes,
    }


def add_attempt(kept: str | None, entry: AttemptRow) -> str:
    """The list of ended attempts with one more, bounded."""
    entries = [*attempts_of(kept), entry][-MOST_ATTEMPTS_KEPT:]
    return msgspec.json.encode(entries).decode()


def attempts_of(kept: str | None) -> list[AttemptRow]:
    """The ended attempts of a job, oldest first; none if somebody has edited them beyond recognition."""
    try:
        return _decoder.decode(kept) if kept else []
    except UNREADABLE:
        return []


_decoder = msgspec.json.Decoder(list[AttemptRow])
