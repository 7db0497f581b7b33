"""prune: drop finished jobs whose retention is over, by whole partitions or row by row.

A partition is truncated when its day is over, so a job may stay up to a day longer than its queue asks for. TRUNCATE
needs an exclusive lock, and while a transaction waits for one, all others wait behind it. So it waits for at most 0.1
s, and the next call tries again.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from windlass.core.flow.queue import TOMBSTONE_RETENTION
from windlass.core.flow.rate import SET_BACK
from windlass.core.ids import JobId
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.stats.samples import SAMPLE_RETENTION
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.records import RowsHeld
from windlass.store.sql.documents import PRUNE_DOCUMENTS
from windlass.store.sql.stats import prune_meters, prune_samples

PARTITIONS = 32
EVER: Micros = 2**62
PAGE = 20_000
PAGES = 10
"""Pages of a partition that one call reads."""
SUM_COUNTS = "sum_history_counts"
MIN_ROWS_TO_SUM = 300
MAX_ROWS_TO_SUM = 50_000
"""Rows that one statement sums up."""
MAX_REPEATING: Micros = 1 * SECOND
"""How long one call deletes or sums up one kind of rows; other duties wait for it."""
_FIRST = "00000000-0000-0000-0000-000000000000"


async def drop(db: Db, ids: Sequence[JobId], before: Micros = EVER) -> list[JobId]:
    """Drop finished jobs; returns the ids of those that this call dropped.

    Jobs whose retention ends after `before` are kept: a job may have been revived since it was found. The ids of
    dropped jobs stay as tombstones until a day after the jobs ended.
    """
    if not ids:
        return []
    values = {"ids": list(ids), "tombstone": TOMBSTONE_RETENTION, "before": before}
    return [row[0] for row in await db.rows("drop", values)]


class Pruner:
    """Prunes, and remembers how far it has scanned a partition. Several processes may prune at the same time."""

    def __init__(self) -> None:
        self._scanned: tuple[int, JobId] = (0, _FIRST)
        self._samples_pruned = dict.fromkeys(SAMPLE_RETENTION, 0)
        """Up to when samples were pruned: dead rows before that, which an old snapshot keeps, are not scanned."""
        self._limit = 0
        self._unfinished: set[str] = set()
        """Statements that ran out of time."""

    async def prune(self, access: Access, limit: int) -> list[JobId]:
        """Prune; returns the dropped ids up to `limit`, of truncated partitions only those with blobs or notes."""
        # First, so that the counts do not grow without bound if anything below fails each time.
        self._limit = limit
        await self._clear(access, SUM_COUNTS)
        dropped = await access.write(lambda db: _prune_rows(db, limit))
        for name in ("prune_keys", "prune_result_waits", PRUNE_DOCUMENTS):
            await self._clear(access, name)
        if access.server.address.profile.partitions:
            dropped += await self._drop_days(access, limit - len(dropped))
            await _truncate_old_tombstones(access)
        else:
            for name in ("prune_tombstones", "prune_conflicts"):
                await self._clear(access, name)
        await access.once(lambda db: db.run("reset_future_token_buckets", {"tolerance": SET_BACK}))
        await self._clear(access, "prune_token_buckets")
        for step, since in self._samples_pruned.items():
            self._samples_pruned[step] = await access.write(partial(prune_samples, step=step, since=since))
        return dropped

    async def _drop_days(self, access: Access, limit: int) -> list[JobId]:
        """Truncate the partitions of days that are over; returns the ids of jobs that were dropped row by row."""
        dropped: list[JobId] = []
        for day, shared in await access.read(lambda db: db.rows("days_over")):
            if len(dropped) >= limit:
                break
            some, seen = await self._drop_one_by_one(access, day, limit - len(dropped), every=shared)
            dropped += some
            if seen:
                await (_drop_day_counts(access, day) if shared else _truncate_partition(access, day))
        return dropped

    async def catch_up(self, access: Access) -> None:
        """Continue what `prune`, which runs once a minute, could not finish."""
        for name in sorted(self._unfinished):
            await self._clear(access, name)

    async def _clear(self, access: Access, name: str) -> None:
        done = await (_sum_counts(access) if name == SUM_COUNTS else _drop_all(access, name, self._limit))
        (self._unfinished.discard if done else self._unfinished.add)(name)

    async def _drop_one_by_one(
        self, access: Access, day: int, limit: int, *, every: bool
    ) -> tuple[list[JobId], bool]:
        """Drop the jobs that must be dropped one by one; also returns whether all of the partition was read."""
        dropped: list[JobId] = []
        after = self._scanned[1] if self._scanned[0] == day else _FIRST
        for _ in range(PAGES):
            left = limit - len(dropped)
            last, ids = await _next_page(access, day, after, left, every=every)
            if last is None:
                return dropped, True
            dropped += await _drop(access, ids, (day + 1) * DAY)
            after = ids[-1] if len(ids) == left else last
            self._scanned = (day, after)
            if len(ids) == left:
                break
        return dropped, False


async def _next_page(
    access: Access, day: int, after: JobId, limit: int, *, every: bool
) -> tuple[JobId | None, list[JobId]]:
    """The last id of the next page, and the jobs in it that must be dropped one by one."""
    values = {
        "partition": day % PARTITIONS,
        "until": (day + 1) * DAY,
        "after": after,
        "size": PAGE,
        "limit": limit,
        "every": every,
        "tombstone": TOMBSTONE_RETENTION,
    }
    last, ids = (await access.read(lambda db: db.rows("drop_one_by_one", values)))[0]
    return last, ids


async def _drop(access: Access, ids: list[JobId], before: Micros) -> list[JobId]:
    return await access.once(lambda db: drop(db, ids, before)) if ids else []


async def _prune_rows(db: Db, limit: int) -> list[JobId]:
    """Drop the jobs that are pruned row by row, and old meters."""
    ids = [row[0] for row in await db.rows("lock_prunable", {"limit": limit})]
    dropped = await drop(db, ids)
    await prune_meters(db)
    return dropped


async def _sum_counts(access: Access) -> bool:
    """Sum up the rows of history_counts, for at most MAX_REPEATING; returns whether few are left."""
    ends = since_boot() + MAX_REPEATING
    values = {"min_rows": MIN_ROWS_TO_SUM, "max_rows": MAX_ROWS_TO_SUM}
    while True:
        ((rows, sums),) = await access.once(lambda db: db.rows(SUM_COUNTS, values))
        # Rows that hardly become fewer are for as many queues and days: going on would sum up sums again.
        if rows < MAX_ROWS_TO_SUM or 2 * sums > rows:
            return True
        if since_boot() >= ends:
            return False


async def _drop_all(access: Access, name: str, limit: int) -> bool:
    """Repeat a statement that deletes up to `limit` rows, for at most MAX_REPEATING; returns whether all are gone."""
    ends = since_boot() + MAX_REPEATING
    while await access.once(lambda db: db.run(name, {"limit": limit})) >= max(1, limit):
        if since_boot() >= ends:
            return False
    return True


async def _truncate_old_tombstones(access: Access) -> None:
    """Truncate the tombstones of a day that is over."""
    for day, over in await access.read(lambda db: db.rows("expired_tombstones")):
        if over:
            await _truncate_tombstones(access, day)


async def _truncate_tombstones(access: Access, day: int) -> None:
    partition = f"windlass.tombstones_{day % 3}"

    async def empty(db: Db) -> None:
        await db.rows("set_lock_timeout", {"wait": "100ms"})
        await db.select(f"LOCK TABLE {partition} IN ACCESS EXCLUSIVE MODE")
        # While we waited for the lock, the next day may have begun, which uses this partition.
        if (day, True) in [tuple(row) for row in await db.rows("expired_tombstones")]:
            await db.select(f"TRUNCATE TABLE {partition}")

    await _if_free(access, empty)


async def _truncate_partition(access: Access, day: int) -> None:
    partition = f"windlass.history_day_{day % PARTITIONS:02}"

    async def empty(db: Db) -> None:
        await db.rows("set_lock_timeout", {"wait": "100ms"})
        await db.select(f"LOCK TABLE {partition} IN ACCESS EXCLUSIVE MODE")
        # With the lock, nothing is added, and all that was added is counted. A later day may use the partition by
        # now.
        if (await db.rows("later_days", {"day": day}))[0][0]:
            return
        await db.select(f"TRUNCATE TABLE {partition}")
        await _drop_counts(db, day)

    await _if_free(access, empty)


async def _if_free(access: Access, empty: Callable[[Db], Awaitable[None]]) -> None:
    """Truncate a partition, unless a reader keeps it locked: then the next call tries again."""
    with contextlib.suppress(RowsHeld):
        await access.write(empty)


async def _drop_day_counts(access: Access, day: int) -> None:
    """Delete the counts of a day of which nothing is left in the partition, because a later day uses it."""
    await access.write(lambda db: _drop_counts(db, day))


async def _drop_counts(db: Db, day: int) -> None:
    """Delete the counts of a day, repeatedly, because rows that are being summed up reappear as sums."""
    while (await db.rows("has_history_counts", {"day": day}))[0][0]:
        await db.run("drop_history_counts", {"day": day})
