"""Records: after the end of an attempt or a job, and as rows. Pure; `replace` writes them."""

from typing import Any

import msgspec

from windlass.core.flow.key_slots import keeps_key_slot
from windlass.core.jobs.outcome import Ending
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status
from windlass.store.ending import Running, ending_values, resolve
from windlass.store.redis.records.record import NO_KEY_SLOT, REASONS, Details, Flag, Record, letter_of


def running_of(record: Record, queue: str) -> Running:
    """The fields that decide how the attempt ends."""
    fields = record.fields
    return Running(
        id=record.id,
        queue=queue,
        type=fields.type,
        attempt=record.attempt,
        max_attempts=record.max_attempts,
        failures=record.failures,
        crashes=record.crashes,
        worker=record.runner or None,
        claimed_at=record.claimed_at or None,
        started_at=record.started_at or None,
        cancel_requested=int(bool(record.flags & Flag.CANCEL_REQUESTED)),
        reason=record.reason,
        idempotency_key=fields.idempotency_key,
        attempts=record.details.attempts,
        idempotency_window=fields.window,
        expires_at=record.expires_at or None,
        concurrency_key=fields.concurrency_key,
        key_strict=fields.key_strict,
    )


def end_attempt(record: Record, queue: str, ending: Ending, now: Micros) -> Record:
    """The running job after this ending: finished, or waiting again."""
    job = running_of(record, queue)
    ending = resolve(job, ending, now)
    values = ending_values(job, ending, now)
    error = values["error"] or record.details.error
    after = msgspec.structs.replace(
        record,
        failures=record.failures + ending.failures,
        crashes=record.crashes + ending.crashes,
        rescues=record.rescues + ending.rescues,
        suspicions=record.suspicions + ending.suspicions,
        requeues=record.requeues + ending.requeues,
        snoozes=record.snoozes + ending.snoozes,
        details=Details(
            error=None if ending.status is Status.COMPLETED else error,
            attempts=values["attempts"],
        ),
    )
    _set_status_at(after, ending.status, ending.reason, now)
    if not keeps_key_slot(ending.status, record.fields.key_strict):
        after.key_slot = NO_KEY_SLOT
    if ending.status in FINISHED:
        after.result = ending.result
        after.started_at = values["started_at"] or 0
    else:
        _put_back(after, ending, now)
    return after


def _put_back(after: Record, ending: Ending, now: Micros) -> None:
    """Make the job wait again. A requeued or rescued one keeps its rank, ahead of newer jobs."""
    after.runner, after.claim, after.claimed_at, after.started_at = "", 0, 0, 0
    if ending.status is not Status.PENDING:
        after.run_at = after.rank = now + ending.delay
        reset_ageing(after)


def cancelled(record: Record, reason: str, now: Micros) -> Record:
    """A waiting job that ends without a run: cancelled by an operator, replaced by a new job, or expired."""
    after = msgspec.structs.replace(record, key_slot=NO_KEY_SLOT)
    _set_status_at(after, Status.CANCELLED, reason, now)
    return after


def reset_ageing(record: Record) -> None:
    """Undo ageing: back to the priority of its enqueue."""
    record.sort_priority, record.aged_by = record.sort_priority + record.aged_by, 0


def set_status(record: Record, status: Status, reason: str | None) -> None:
    """Set the status; a reason that the letter implies is not stored."""
    record.letter = letter_of(status, reason)
    kept = None if record.letter in REASONS else reason
    record.details = msgspec.structs.replace(record.details, reason=kept)


def _set_status_at(record: Record, status: Status, reason: str | None, now: Micros) -> None:
    set_status(record, status, reason)
    record.updated_at = now


def row_of(record: Record, queue: str) -> tuple[Any, ...]:
    """The columns of store.rows.SHARED, finished_at and result: what `to_job` takes."""
    fields = record.fields
    return (
        record.id,
        queue,
        fields.type,
        record.payload,
        record.status,
        record.reason,
        record.sort_priority + record.aged_by,
        record.attempt,
        record.max_attempts,
        record.failures,
        record.crashes,
        record.rescues,
        record.suspicions,
        record.requeues,
        record.snoozes,
        record.run_at,
        record.created_at,
        record.updated_at,
        record.claimed_at or None,
        record.started_at or None,
        record.runner or None,
        fields.idempotency_key,
        fields.concurrency_key,
        fields.tenant,
        fields.parent,
        fields.flow,
        record.timeout,
        record.expires_at or None,
        bool(record.flags & Flag.CANCEL_REQUESTED),
        fields.tags,
        fields.meta,
        record.details.error,
        record.details.attempts,
        fields.window,
        fields.key_limit,
        fields.key_strict,
        None if fields.rate is None else str(fields.rate),
        fields.rate_cost,
        fields.parents,
        fields.schedule,
        fields.tick,
        record.updated_at if record.finished else None,
        record.result,
    )
