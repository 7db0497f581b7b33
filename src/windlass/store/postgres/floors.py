"""Floors: where claims begin.

Claimed and finished jobs leave dead entries at the low end of the index of pending jobs, and as long as anybody holds
an old snapshot they cannot be cleaned away. A claim that began there would step over all of them. So each queue and
urgency has a floor: a rank below which nothing is pending. It is raised from time to time, and lowered by whoever
puts a job back below it.

Ranks come from the clock, so jobs are committed nearly in the order of their ranks, but not quite: one that took its
rank at T may be committed long after. A floor is raised to T only when every transaction that had begun when T was
noted is over, and a look then finds nothing pending below T. T is noted a little in the past, because a transaction
has its clock before it has its number.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.postgres.access import Access
from windlass.store.postgres.admit import DueFloor, raise_due_floor
from windlass.store.postgres.db import Db
from windlass.store.postgres.sparing import LONGEST

MARGIN: Micros = 1 * SECOND
SHARE = 50
"""Of so many parts of the time, looks for where a floor may be, and for what is below it, may take one each."""

At = tuple[str, int]
"""A queue and an urgency."""


class _Noted(msgspec.Struct, frozen=True):
    """A moment, and the first transaction that had not begun by then."""

    rank: Micros
    ahead: int


async def lower(db: Db, places: Iterable[tuple[str, int, Micros]]) -> None:
    """Jobs were put back at these ranks: they must be found there."""
    columns = list(zip(*sorted(places), strict=True))
    if columns:
        queues, urgencies, ranks = columns
        await db.run("lower_floors", {"queues": list(queues), "urgencies": list(urgencies), "ranks": list(ranks)})


class Floors:
    """Raises the floors; one of these in the coordinator is enough, and several do no harm."""

    def __init__(self) -> None:
        self._noted: _Noted | None = None
        self._written = -1
        self._due = DueFloor()
        self._next_raise = 0
        self._next_look = 0

    async def tidy(self, access: Access) -> None:
        """Raise what can be raised; now and then look for what lies below a floor in spite of everything."""
        floors = await access.read(lambda db: db.rows("floors"))
        if not floors:
            return
        behind, written = floors[0][4:]
        began = since_boot()
        if written != self._written and began >= self._next_raise:
            await self._raise_all(access, floors, behind)
            self._next_raise = began + min(SHARE * (since_boot() - began), LONGEST)
            await access.once(lambda db: raise_due_floor(db, self._due))
        if self._noted is None:
            # Only after the floors were raised up to what was written: else the last of it would be forgotten.
            self._written = written
        await self._look_below(access)

    async def _raise_all(self, access: Access, floors: Sequence[Any], behind: int) -> None:
        noted = self._noted
        if noted is None:
            now, ahead = (await access.once(lambda db: db.rows("note_moment")))[0]
            self._noted = _Noted(now - MARGIN, ahead)
        elif behind >= noted.ahead:
            for queue, urgency, rank, returns, *_ in floors:
                if rank < noted.rank:
                    await self._raise(access, (queue, urgency), (rank, returns), noted.rank)
            self._noted = None

    async def _raise(self, access: Access, at: At, floor: tuple[Micros, int], rank: Micros) -> None:
        queue, urgency = at
        values = {"queue": queue, "urgency": urgency, "floor": floor[0]}
        lowest = await access.read(lambda db: db.rows("lowest_pending", values))
        rank = min(rank, lowest[0][0]) if lowest else rank
        if rank > floor[0]:
            change = {"queue": queue, "urgency": urgency, "rank": rank, "returns": floor[1]}
            await access.once(lambda db: db.run("raise_floor", change))

    async def _look_below(self, access: Access) -> None:
        began = since_boot()
        if began < self._next_look:
            return
        lost = await access.read(lambda db: db.rows("below_floors"))
        if lost:
            await access.once(lambda db: lower(db, lost))
        ended = since_boot()
        self._next_look = ended + max(SECOND, min(SHARE * (ended - began), LONGEST))
