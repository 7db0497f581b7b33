"""How attempts and jobs end: the record that stands after it. Pure; `replace` puts it into its place."""

import msgspec

from windlass.core.moments import Micros
from windlass.core.slots import keeps_slot
from windlass.core.status import FINISHED, Status
from windlass.store.ending import Ending, Running, ending_values, resolve
from windlass.store.redis.record import NOBODY, REASONS, Flag, More, Record, letter_of


def running_of(record: Record, queue: str) -> Running:
    """What ending its attempt needs to know."""
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
        cancel_requested=int(bool(record.flags & Flag.CANCELLING)),
        reason=record.reason,
        idempotency_key=fields.idempotency_key,
        attempts=record.more.attempts,
        idempotency_window=fields.window,
        expires_at=record.expires_at or None,
        concurrency_key=fields.concurrency_key,
        key_strict=fields.key_strict,
    )


def end(record: Record, queue: str, ending: Ending, now: Micros) -> Record:
    """The running job after this ending: over, or back among the waiting."""
    job = running_of(record, queue)
    ending = resolve(job, ending, now)
    values = ending_values(job, ending, now)
    error = values["error"] or record.more.error
    after = msgspec.structs.replace(
        record,
        failures=record.failures + ending.failures,
        crashes=record.crashes + ending.crashes,
        rescues=record.rescues + ending.rescues,
        suspicions=record.suspicions + ending.suspicions,
        hand_backs=record.hand_backs + ending.hand_backs,
        snoozes=record.snoozes + ending.snoozes,
        more=More(
            error=None if ending.status is Status.COMPLETED else error,
            attempts=values["attempts"],
        ),
    )
    _stand(after, ending.status, ending.reason, now)
    if not keeps_slot(ending.status, record.fields.key_strict):
        after.slot = NOBODY
    if ending.status in FINISHED:
        after.result = ending.result
        after.started_at = values["started_at"] or 0
    else:
        _put_back(after, ending, now)
    return after


def _put_back(after: Record, ending: Ending, now: Micros) -> None:
    """Among the waiting. What is handed back or rescued keeps its rank: it loses no place to newer ones."""
    after.runner, after.claim, after.claimed_at, after.started_at = "", 0, 0, 0
    if ending.status is not Status.PENDING:
        after.run_at = after.rank = now + ending.delay
        lay_down(after)


def called_off(record: Record, reason: str, now: Micros) -> Record:
    """A waiting job that ends without a run: called off by a person, replaced by a newcomer, or expired."""
    after = msgspec.structs.replace(record, slot=NOBODY)
    _stand(after, Status.CANCELLED, reason, now)
    return after


def lay_down(record: Record) -> None:
    """What ageing has lifted it by goes: it is at the priority that it was handed in with."""
    record.urgency, record.lifted = record.urgency + record.lifted, 0


def stand(record: Record, status: Status, reason: str | None) -> None:
    """Give it a status; a reason that the letter says by itself is not kept twice."""
    record.letter = letter_of(status, reason)
    kept = None if record.letter in REASONS else reason
    record.more = msgspec.structs.replace(record.more, reason=kept)


def _stand(record: Record, status: Status, reason: str | None, now: Micros) -> None:
    stand(record, status, reason)
    record.updated_at = now
