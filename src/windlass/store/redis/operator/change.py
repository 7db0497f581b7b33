"""change: a waiting job gets another time, priority, payload or queue; a dead one another payload."""

from collections.abc import Sequence

import msgspec

from windlass.core.flow.slots import or_waiting_for_key, slot_after
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange, Timing, may_change, reschedule
from windlass.core.status import Status
from windlass.store.records import Transition
from windlass.store.redis.connection.access import Access
from windlass.store.redis.dependencies.dependents import notify_dependents, register_children
from windlass.store.redis.operator.decide import Decided, decide_all, replace_decided
from windlass.store.redis.operator.move import move_all
from windlass.store.redis.operator.operator_verbs import apply_timing, slot_of
from windlass.store.redis.operator.read_records import FoundJob
from windlass.store.redis.operator.replace import Replaced, by_queue, text_of
from windlass.store.redis.records.ending import reset_ageing
from windlass.store.redis.records.portion import MAX_WRITTEN, first_portion
from windlass.store.redis.records.record import NO_SLOT, Flag, Letter, Record


async def change(access: Access, ids: Sequence[JobId], wanted: JobChange) -> list[Transition | None]:
    """Each of them wholly or not at all; an idempotency key goes with its job into another queue."""

    async def apply(access: Access, decided: Decided) -> dict[JobId, Replaced]:
        there = [(seen, after) for seen, after in decided if _moves(seen, wanted)]
        replaced = await replace_decided(access, [(s, after) for s, after in decided if not _moves(s, wanted)])
        if wanted.queue is not None and there:
            leaving = [(seen.queue, (seen.record, after)) for seen, after in there]
            while leaving:
                some = first_portion(leaving, lambda each: text_of(each[1]), len(leaving), MAX_WRITTEN)
                replaced |= await move_all(access, wanted.queue, by_queue(some))
                leaving = leaving[len(some) :]
            await _find_again(access, wanted.queue, [seen for seen, _ in there])
        return replaced

    return await decide_all(access, ids, lambda seen: _changed(seen, wanted), apply)


async def _find_again(access: Access, queue: str, moved: Sequence[FoundJob]) -> None:
    """Links that were moved ask for their parents from where they are now, and children for parents that were."""
    await register_children(
        access, {queue: [seen.record.id for seen in moved if seen.record.flags & Flag.WAITS_FOR_PARENTS]}
    )
    await notify_dependents(access, {seen.queue for seen in moved if seen.record.flags & Flag.HAS_DEPENDENTS})


def _moves(seen: FoundJob, wanted: JobChange) -> bool:
    return wanted.queue not in (None, seen.queue)


def _changed(seen: FoundJob, wanted: JobChange) -> Record | None:
    """The job as it shall be; what ageing has lifted it by goes when it is put off, moved, or given a priority."""
    record, moves = seen.record, _moves(seen, wanted)
    if not may_change(record.status, wanted):
        return None
    payload = record.payload if wanted.payload is None else wanted.payload
    if record.status is Status.DEAD:
        return msgspec.structs.replace(record, payload=payload)
    timing = reschedule(Timing(record.status, record.reason, record.run_at, record.rank), wanted, seen.now)
    slot = slot_after(slot_of(record), timing, wanted, moves)
    timing = or_waiting_for_key(timing, record.fields.concurrency_key, slot)
    after = msgspec.structs.replace(
        record,
        slot=NO_SLOT if slot is None else slot,
        payload=payload,
    )
    if wanted.priority is not None:
        after.sort_priority, after.aged_by = -wanted.priority, 0
    elif timing.status is Status.SCHEDULED or moves:
        reset_ageing(after)
    apply_timing(after, timing, seen.now)
    if record.flags & Flag.WAITS_FOR_PARENTS and wanted.is_timed:
        after.rank = 0  # the delay after its parents
    if after.letter == Letter.THROTTLED and slot is None:
        # It waits for its time only: a job without a slot is not among the throttled ones of its key.
        after.letter = Letter.SCHEDULED
    return after
