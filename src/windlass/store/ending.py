"""How an attempt ends: the facts, their resolution, and the written values, for every store."""

from typing import Any

import msgspec

from windlass.core.flow.key_slots import keeps_key_slot
from windlass.core.jobs.admission import EXPIRED, expires_instead
from windlass.core.jobs.outcome import LOST, UNSTARTED, Ending, Settlement, after_crash
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.records import RunnerEnd
from windlass.store.rows import AttemptRow, add_attempt, attempts_of


class Running(msgspec.Struct, frozen=True):
    """The fields of a running job that decide how its attempt ends."""

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
        """Whether this ending frees a slot of its concurrency key."""
        return self.concurrency_key is not None and not keeps_key_slot(status, self.key_strict)


def ending_of(job: Running, ended: RunnerEnd) -> Ending:
    """The ending of a job whose runner ended, by whether the job had started."""
    if ended.expired or (job.id, job.attempt) in ended.returned:
        return LOST
    if not ended.crashed or (job.id, job.attempt) not in ended.started:
        return UNSTARTED
    return after_crash(
        failures=job.failures, crashes=job.crashes, max_attempts=job.max_attempts, suspects=len(ended.started)
    )


def resolve(job: Running, ending: Ending, now: Micros) -> Ending:
    """The final ending: a job that would run again is cancelled if that was requested, or if it has expired."""
    if job.cancel_requested and ending.status not in (Status.COMPLETED, Status.DEAD):
        # A job that was asked to stop is not retried. The handler's reason wins over the requester's.
        own_reason = ending.reason if ending.status is Status.CANCELLED else None
        ending = msgspec.structs.replace(ending, status=Status.CANCELLED, reason=own_reason or job.reason)
    elif expires_instead(ending.status, job.expires_at, now):
        ending = msgspec.structs.replace(ending, status=Status.CANCELLED, reason=EXPIRED)
    return ending


def ending_values(job: Running, ending: Ending, now: Micros) -> dict[str, Any]:
    """The values to write for an ending: times, error, and the attempts."""
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
        "requeues": ending.requeues,
        "snoozes": ending.snoozes,
    }


def is_repeat(settlement: Settlement, attempt: int, status: str, attempts: str | None) -> bool:
    """Whether a job has this settlement recorded already."""
    if attempt == settlement.attempt and status == settlement.status == Status.COMPLETED:
        return True
    mine = (settlement.attempt, settlement.outcome)
    return any((entry.attempt, entry.outcome) == mine for entry in attempts_of(attempts))
