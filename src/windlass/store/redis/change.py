"""change: a waiting job gets another time, priority, payload or queue."""

from collections.abc import Sequence

import msgspec

from windlass.core.change import JobChange, Timing, may_change, retimed
from windlass.core.ids import JobId
from windlass.core.slots import seated, slot_after
from windlass.core.status import Status
from windlass.store.records import Moved
from windlass.store.redis.access import Access
from windlass.store.redis.decide import Decided, decide_all, replace_decided
from windlass.store.redis.ending import lay_down
from windlass.store.redis.heirs import follow, register
from windlass.store.redis.move import move_all
from windlass.store.redis.operate import sit_down, slot_of
from windlass.store.redis.record import NOBODY, Flag, Letter, Record
from windlass.store.redis.replace import Replaced, by_queue
from windlass.store.redis.sight import Seen


async def change(access: Access, ids: Sequence[JobId], wanted: JobChange) -> list[Moved | None]:
    """Each of them wholly or not at all; an idempotency key goes with its job into another queue."""

    async def apply(access: Access, decided: Decided) -> dict[JobId, Replaced]:
        there = [(seen, after) for seen, after in decided if _moves(seen, wanted)]
        replaced = await replace_decided(access, [(s, after) for s, after in decided if not _moves(s, wanted)])
        if wanted.queue is not None and there:
            replaced |= await move_all(
                access, wanted.queue, by_queue([(seen.queue, (seen.record, after)) for seen, after in there])
            )
            await _find_again(access, wanted.queue, [seen for seen, _ in there])
        return replaced

    return await decide_all(access, ids, lambda seen: _changed(seen, wanted), apply)


async def _find_again(access: Access, queue: str, moved: Sequence[Seen]) -> None:
    """Links that were moved ask for their parents from where they are now, and children for parents that were."""
    await register(access, {queue: [seen.record.id for seen in moved if seen.record.flags & Flag.WAITS]})
    await follow(access, {seen.queue for seen in moved if seen.record.flags & Flag.HEIRS})


def _moves(seen: Seen, wanted: JobChange) -> bool:
    return wanted.queue not in (None, seen.queue)


def _changed(seen: Seen, wanted: JobChange) -> Record | None:
    """The job as it shall be; what ageing has lifted it by goes when it is put off, moved, or given a priority."""
    record, moves = seen.record, _moves(seen, wanted)
    if not may_change(record.status):
        return None
    timing = retimed(Timing(record.status, record.reason, record.run_at, record.rank), wanted, seen.now)
    slot = slot_after(slot_of(record), timing, wanted, moves)
    timing = seated(timing, record.fields.concurrency_key, slot)
    after = msgspec.structs.replace(
        record,
        slot=NOBODY if slot is None else slot,
        payload=record.payload if wanted.payload is None else wanted.payload,
    )
    if wanted.priority is not None:
        after.urgency, after.lifted = -wanted.priority, 0
    elif timing.status is Status.SCHEDULED or moves:
        lay_down(after)
    sit_down(after, timing, seen.now)
    if record.flags & Flag.WAITS and wanted.is_timed:
        after.rank = 0  # the delay after its parents
    if after.letter == Letter.ASIDE and slot is None:
        # It waits for its time only: who has no slot is not among those that the rate of their key lets go next.
        after.letter = Letter.SCHEDULED
    return after
