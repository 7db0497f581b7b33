"""Where jobs are in their lives. The living are locked, so that what is decided about them holds."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.postgres.db import Db
from windlass.store.records import Moved

LOOKS = 2
"""A job may be revived between the look at the living and that at the finished: then it is found by another look."""

Found = dict[JobId, "Whereabouts"]
Verb = Callable[[list[JobId]], Awaitable[dict[JobId, Moved]]]


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """What deciding about a job needs to know of it; a finished one has no place in time."""

    status: Status
    queue: str
    urgency: int
    key: str | None
    finished: bool
    reason: str | None = None
    run_at: Micros = 0
    rank: Micros = 0
    line: str | None = None
    """Its concurrency key."""
    slot: int | None = None
    waits: int = 0
    """For so many parents, if it was called off before they had completed."""


async def find(db: Db, ids: Sequence[JobId], *, lock_finished: bool = False) -> Found:
    """Those that are there. Needs a transaction."""
    found: Found = {}
    for _ in range(LOOKS):
        found |= await _living(db, [id_ for id_ in ids if id_ not in found])
        # In a statement of its own: one that was settled while we waited for its lock is in history now.
        found |= await _finished(db, [id_ for id_ in ids if id_ not in found], lock=lock_finished)
    return found


async def _living(db: Db, ids: list[JobId]) -> Found:
    rows = await db.rows("lock_live", {"ids": ids}) if ids else []
    return {
        id_: Whereabouts(
            status=Status(status),
            queue=queue,
            urgency=urgency,
            key=key,
            finished=False,
            reason=reason,
            run_at=run_at,
            rank=rank,
            line=line,
            slot=slot,
        )
        for id_, status, reason, run_at, rank, queue, urgency, key, line, slot in rows
    }


async def _finished(db: Db, ids: list[JobId], *, lock: bool) -> Found:
    rows = await db.rows("lock_finished" if lock else "finished", {"ids": ids}) if ids else []
    return {
        id_: Whereabouts(status=Status(status), queue=queue, urgency=urgency, key=key, finished=True, waits=waits)
        for id_, status, queue, urgency, key, waits in rows
    }


async def each(ids: Sequence[JobId], verb: Verb) -> list[Moved | None]:
    """The answer for each id. One that is named twice is treated twice, the second time as the first has left it."""
    answers: list[Moved | None] = [None] * len(ids)
    waiting = dict(enumerate(ids))
    while waiting:
        firsts: dict[JobId, int] = {}
        for place, id_ in waiting.items():
            firsts.setdefault(id_, place)
        moved = await verb(list(firsts))
        for id_, place in firsts.items():
            answers[place] = moved.get(id_)
            del waiting[place]
    return answers
