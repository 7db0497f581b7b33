"""Watermarks: where claims begin.

Claimed and finished jobs leave dead entries at the low end of the index of pending jobs, which stay while an old
snapshot is held. A claim that began there would scan all of them. So each queue and sort priority has a watermark: a
rank below which no job is pending. The coordinator raises it; a statement that puts a job back lowers it.

Ranks come from the clock, so jobs are committed nearly in the order of their ranks. But a job that got its rank at a
moment T may be committed much later. So a watermark is raised to T only once every transaction has ended that had
begun when T was recorded, and if no job is pending below T. The recorded T is a little in the past, because a
transaction reads its clock before it gets its id. The due watermark does the same for admission.
"""

from collections.abc import Iterable

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.core.stats.meter import interval_of
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.throttle import MAX_PAUSE

MARGIN: Micros = 1 * SECOND
SHARE = 50
"""Raising watermarks, and searching below them, take at most 1/50 of the time each."""

PORTION = 1000
"""Watermarks raised by one statement."""
MAX_TURN: Micros = SECOND // 4
"""How long one call raises watermarks; other duties wait for it."""
IDLE: Micros = 30 * SECOND
"""How far behind the clock the watermark of an idle queue may stay."""

DUE_MARGIN: Micros = 2 * SECOND
"""Jobs are inserted as due at most this far in the past: a transaction reads its clock before it gets its id."""
DUE_WHOLE_EVERY: Micros = 60 * SECOND
"""How often the search for the due watermark begins at the very first job."""

At = tuple[str, int]
"""A queue and a sort priority."""
_START: At = ("", -(2**31))


class _Noted(msgspec.Struct, frozen=True):
    """A moment, and the first transaction that had not begun by then."""

    rank: Micros
    ahead: int


async def add_watermarks(db: Db, levels: Iterable[At]) -> None:
    """Add watermarks for queues and priorities that have none."""
    columns = list(zip(*sorted(set(levels)), strict=True))
    if columns:
        await db.run("add_watermarks", {"queues": list(columns[0]), "sort_priorities": list(columns[1])})


async def lower(db: Db, levels: Iterable[tuple[str, int, Micros]]) -> None:
    """Lower watermarks to the ranks at which jobs were put back, so that claims find them."""
    columns = list(zip(*sorted(levels), strict=True))
    if columns:
        queues, sort_priorities, ranks = columns
        await db.run(
            "lower_watermarks",
            {"queues": list(queues), "sort_priorities": list(sort_priorities), "ranks": list(ranks)},
        )


class _DueNoted(msgspec.Struct, frozen=True):
    """A moment, and an id above those of all transactions that had begun by then."""

    due: Micros
    ahead: int


class DueWatermark:
    """The state of the process that raises the due watermark; several such processes do no harm."""

    def __init__(self) -> None:
        self.noted: _DueNoted | None = None
        self.whole_at: Micros = 0


async def raise_due_watermark(db: Db, watermark: DueWatermark) -> None:
    """Record a moment or, once every transaction of that time has ended, raise the watermark to the recorded one.

    Every DUE_WHOLE_EVERY the search begins at the very first job: so a job below the watermark, whose transaction
    stalled for longer than the margin, is late but not lost.
    """
    noted = watermark.noted
    if noted is not None:
        whole = not noted.due < watermark.whole_at <= noted.due + DUE_WHOLE_EVERY
        values = {"due": noted.due, "ahead": noted.ahead, "whole": whole}
        if not await db.rows("raise_due_watermark", values):
            return
        if whole:
            watermark.whole_at = noted.due + DUE_WHOLE_EVERY
    now, ahead = (await db.rows("transaction_id"))[0]
    watermark.noted = _DueNoted(now - DUE_MARGIN, ahead)


class Watermarks:
    """Raises the watermarks; one in the coordinator is enough, and several do no harm."""

    def __init__(self) -> None:
        self._noted: _Noted | None = None
        self._after: At = _START
        """The last watermark that was read since the moment was recorded."""
        self._written = -1
        self._due = DueWatermark()
        self._next_raise = 0
        self._next_look = 0

    async def tidy(self, access: Access) -> None:
        """Raise watermarks; from time to time, search for jobs below them."""
        ((behind, written),) = await access.read(lambda db: db.rows("progress"))
        began = since_boot()
        if written != self._written and began >= self._next_raise:
            await self._raise_all(access, behind)
            self._next_raise = began + min(SHARE * (since_boot() - began), MAX_PAUSE)
            await access.once(lambda db: raise_due_watermark(db, self._due))
        if self._noted is None:
            # Only once watermarks were raised for all that was written; otherwise the last of it would be missed.
            self._written = written
        await self._look_below(access)

    async def _raise_all(self, access: Access, behind: int) -> None:
        """Record a moment or, once its transactions have ended, raise watermarks to it, for at most MAX_TURN."""
        noted = self._noted
        if noted is None:
            now, ahead = (await access.once(lambda db: db.rows("transaction_id")))[0]
            self._noted = _Noted(now - MARGIN, ahead)
        elif behind >= noted.ahead:
            ends = since_boot() + MAX_TURN
            while await self._raise_portion(access, noted.rank):
                if since_boot() >= ends:
                    return
            self._noted = None

    async def _raise_portion(self, access: Access, rank: Micros) -> bool:
        """Raise the next watermarks; returns whether there are more."""
        queue, sort_priority = self._after
        values = {
            "queue": queue,
            "sort_priority": sort_priority,
            "limit": PORTION,
            "rank": rank,
            "idle": rank - IDLE,
            "since": interval_of(rank - IDLE),
        }
        rows = await access.once(lambda db: db.rows("raise_watermarks", values))
        levels, queue, sort_priority, _ = rows[0] if rows else (0, *_START, 0)
        self._after = (queue, sort_priority) if levels == PORTION else _START
        return bool(levels == PORTION)

    async def _look_below(self, access: Access) -> None:
        began = since_boot()
        if began < self._next_look:
            return
        lost = await access.read(lambda db: db.rows("below_watermarks"))
        if lost:
            await access.once(lambda db: lower(db, lost))
        ended = since_boot()
        self._next_look = ended + max(SECOND, min(SHARE * (ended - began), MAX_PAUSE))
