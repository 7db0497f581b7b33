"""How an attempt ends: the facts, what becomes of them, and what is written. Where it is written is the store's."""

from typing import Any

import msgspec

from windlass.core.expiry import EXPIRED, spoils
from windlass.core.job import JobError
from windlass.core.moments import Micros
from windlass.core.outcome import LOST, UNSTARTED, Fate, Settlement, after_crash
from windlass.core.slots import keeps_slot
from windlass.core.status import Status
from windlass.store.attempts import AttemptRow, add_attempt, attempts_of
from windlass.store.records import RunnerEnd


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
    concurrency_key: str | None = None
    key_strict: bool | None = None

    def frees(self, status: Status) -> bool:
        """Whether ending so gives its concurrency key to the next in line."""
        return self.concurrency_key is not None and not keeps_slot(status, self.key_strict)


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


def fate_of(job: Running, ended: RunnerEnd) -> Fate:
    """What becomes of a job whose runner was seen to end, by whoever knows which jobs had started there."""
    if (job.id, job.attempt) in ended.returned:
        return LOST
    if not ended.crashed or (job.id, job.attempt) not in ended.started:
        return UNSTARTED
    return after_crash(
        failures=job.failures, crashes=job.crashes, max_attempts=job.max_attempts, suspects=len(ended.started)
    )


def resolve(job: Running, ending: Ending, now: Micros) -> Ending:
    """The ending as it stands: what would run again is cancelled if somebody asked for that, or if it has expired."""
    if job.cancel_requested and ending.status not in (Status.COMPLETED, Status.DEAD):
        # A retry that nobody wants any more is a cancellation too. Why: as the handler says it, else whoever asked.
        said = ending.reason if ending.status is Status.CANCELLED else None
        ending = msgspec.structs.replace(ending, status=Status.CANCELLED, reason=said or job.reason)
    elif spoils(ending.status, job.expires_at, now):
        ending = msgspec.structs.replace(ending, status=Status.CANCELLED, reason=EXPIRED)
    return ending


def ending_values(job: Running, ending: Ending, now: Micros) -> dict[str, Any]:
    """What is written of an ending, wherever the job goes: the moments, the error, the attempt among the others."""
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


def is_repeat(settlement: Settlement, attempt: int, status: str, attempts: str | None) -> bool:
    """Whether a job, as it is now, has this very settlement recorded."""
    if attempt == settlement.attempt and status == settlement.status == Status.COMPLETED:
        return True
    mine = (settlement.attempt, settlement.outcome)
    return any((entry.attempt, entry.outcome) == mine for entry in attempts_of(attempts))
