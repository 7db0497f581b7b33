"""prune: drop finished jobs whose retention is over: a whole day at once, or row by row if they do not stand by days.

A shelf is emptied when its day is over, so a job may stay for up to a day longer than its queue wants. Emptying needs
the shelf for itself for a moment. Whoever asks for that makes others wait behind him: so only for a tenth of a
second, and if somebody reads the shelf for longer than that, it is tried again the next time.
"""

from collections.abc import Awaitable, Callable, Sequence

from windlass.core.ids import JobId
from windlass.core.meter import KEPT, slot_of
from windlass.core.moments import DAY, Micros
from windlass.core.queue import TOMBSTONE
from windlass.core.rate import SET_BACK
from windlass.errors import StoreUnavailable
from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db
from windlass.store.postgres.samples import SamplePruner
from windlass.store.postgres.trouble import state_of

SHELVES = 32
EVER: Micros = 2**62
PAGE = 20_000
PAGES = 10
"""Of a shelf, looked through at a time: what is on it may be more than one call should take."""
MANY_TALLIES = 300
MOST_FOLDED = 50_000
_FIRST = "00000000-0000-0000-0000-000000000000"
_LOCK_NOT_HAD = "55P03"


async def drop(db: Db, ids: Sequence[JobId], before: Micros = EVER) -> list[JobId]:
    """Remove finished jobs and all that is kept of them: which. Of two who drop the same ones, one does it.

    Only those that may go `before` a moment: one that was found to may have had another life since. Their ids are
    remembered until a day after they ended.
    """
    if not ids:
        return []
    values = {"ids": list(ids), "tombstone": TOMBSTONE, "before": before}
    return [row[0] for row in await db.rows("drop", values)]


class Pruner:
    """Drops what may be dropped; it remembers how far it has looked through a shelf. Any number of them may prune."""

    def __init__(self) -> None:
        self._looked: tuple[int, JobId] = (0, _FIRST)
        self._samples = SamplePruner()

    async def prune(self, access: Access, limit: int) -> list[JobId]:
        """Drop what is over: of whole days only those are named that have blobs or notes, else all, up to `limit`."""
        dropped = await access.write(lambda db: _prune_rows(db, limit))
        for day, shared in await access.read(lambda db: db.rows("days_over")):
            if len(dropped) >= limit:
                break
            some, seen = await self._drop_laden(access, day, limit - len(dropped), every=shared)
            dropped += some
            if seen:
                await (_forget_day(access, day) if shared else _empty_shelf(access, day))
        await _forget(access)
        await access.once(lambda db: db.run("turn_back_gates", {"little": SET_BACK}))
        await access.once(lambda db: db.run("prune_gates", {"limit": limit}))
        await self._samples.prune(access)
        values = {"enough": MANY_TALLIES, "most": MOST_FOLDED}
        await access.once(lambda db: db.run("fold_tallies", values))
        return dropped

    async def _drop_laden(self, access: Access, day: int, limit: int, *, every: bool) -> tuple[list[JobId], bool]:
        """Those that must go one by one; whether all of the shelf was seen."""
        dropped: list[JobId] = []
        after = self._looked[1] if self._looked[0] == day else _FIRST
        for _ in range(PAGES):
            left = limit - len(dropped)
            last, laden = await _laden(access, day, after, left, every=every)
            if last is None:
                return dropped, True
            dropped += await _drop(access, laden, (day + 1) * DAY)
            after = laden[-1] if len(laden) == left else last
            self._looked = (day, after)
            if len(laden) == left:
                break
        return dropped, False


async def _laden(
    access: Access, day: int, after: JobId, limit: int, *, every: bool
) -> tuple[JobId | None, list[JobId]]:
    """Of the next page of a shelf: the last one, and those that must go one by one."""
    values = {
        "shelf": day % SHELVES,
        "until": (day + 1) * DAY,
        "after": after,
        "size": PAGE,
        "limit": limit,
        "every": every,
        "tombstone": TOMBSTONE,
    }
    last, laden = (await access.read(lambda db: db.rows("laden", values)))[0]
    return last, laden


async def _drop(access: Access, ids: list[JobId], before: Micros) -> list[JobId]:
    return await access.once(lambda db: drop(db, ids, before)) if ids else []


async def _prune_rows(db: Db, limit: int) -> list[JobId]:
    """What goes row by row; old tombstones, meters and keys whose window is over too."""
    ids = [row[0] for row in await db.rows("lock_prunable", {"limit": limit})]
    dropped = await drop(db, ids)
    await db.run("prune_meters", {"before": slot_of(await db.now() - KEPT)})
    await db.run("prune_keys", {"limit": limit})
    await db.run("prune_awaited", {"limit": limit})
    return dropped


async def _forget(access: Access) -> None:
    """Ids that nobody will hand in again go by the day, all at once."""
    for day, over in await access.read(lambda db: db.rows("forgettable")):
        if over:
            await _forget_shelf(access, day)


async def _forget_shelf(access: Access, day: int) -> None:
    shelf = f"windlass.tombstones_{day % 3}"

    async def empty(db: Db) -> None:
        await db.rows("wait_briefly")
        await db.select(f"LOCK TABLE {shelf} IN ACCESS EXCLUSIVE MODE")
        # The next day may have begun while we waited, and what it remembers stands here.
        if (day, True) in [tuple(row) for row in await db.rows("forgettable")]:
            await db.select(f"TRUNCATE TABLE {shelf}")

    await _if_free(access, empty)


async def _empty_shelf(access: Access, day: int) -> None:
    shelf = f"windlass.history_day_{day % SHELVES:02}"

    async def empty(db: Db) -> None:
        await db.rows("wait_briefly")
        await db.select(f"LOCK TABLE {shelf} IN ACCESS EXCLUSIVE MODE")
        # Now nobody can put anything there, and who did has been counted: a later day may have come in between.
        if (await db.rows("later_days", {"day": day}))[0][0]:
            return
        await db.select(f"TRUNCATE TABLE {shelf}")
        await _drop_tallies(db, day)

    await _if_free(access, empty)


async def _if_free(access: Access, empty: Callable[[Db], Awaitable[None]]) -> None:
    """Empty a shelf, unless somebody reads it for longer than others can wait: then the next time."""
    try:
        await access.write(empty)
    except StoreUnavailable as error:
        if error.__cause__ is None or state_of(error.__cause__) != _LOCK_NOT_HAD:
            raise


async def _forget_day(access: Access, day: int) -> None:
    """Nothing of that day is left on the shelf, which is another day's by now."""
    await access.write(lambda db: _drop_tallies(db, day))


async def _drop_tallies(db: Db, day: int) -> None:
    """As long as there are any: rows that somebody was just folding are there as sums when he is done."""
    while (await db.rows("has_tallies", {"day": day}))[0][0]:
        await db.run("drop_tallies", {"day": day})
