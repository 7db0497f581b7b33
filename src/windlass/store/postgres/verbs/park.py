"""park: set jobs aside whose type no live worker knows, so that claims do not scan them again and again.

When a worker registers, its heartbeat unparks a portion of the jobs whose types it knows; the duty `park` unparks the
rest, and jobs that were parked at the same moment.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.liveness.workers import live_workers

HEAD = 200
"""Jobs of each priority of a queue that are checked: those behind them do not slow down claims yet."""
MAX_PARKED = 1000
"""Jobs of each priority of a queue that one call parks."""
UNPARK_BATCH = 1000
"""Jobs unparked by one transaction."""
MAX_UNPARK_TIME: Micros = SECOND // 2
"""How long one call unparks jobs; other duties wait for it."""
BEAT_SECONDS = 1.0
"""How long a heartbeat unparks jobs."""


async def needs_parking(db: Db) -> bool:
    """Whether `park` would find anything; takes no lock."""
    known = await _known_types(db)
    return bool(known) and bool(await db.rows("unknown_types", {"known": known, "limit": HEAD}))


async def park(db: Db) -> dict[str, int]:
    """Park jobs of unknown types at the heads of queues; returns {type: jobs}. Without a live worker, parks none."""
    known = await _known_types(db)
    if not known:
        return {}
    return dict(map(tuple, await db.rows("park", {"known": known, "limit": MAX_PARKED})))


async def unpark_known(access: Access) -> int:
    """Unpark the jobs whose type a live worker knows, for at most MAX_UNPARK_TIME; returns how many."""
    types = await access.read(_known_types)
    if not await access.read(lambda db: is_any_parked(db, types)):
        return 0
    ends, unparked = since_boot() + MAX_UNPARK_TIME, 0
    while portion := await access.write(lambda db: unpark(db, types)):
        unparked += portion
        if portion < UNPARK_BATCH or since_boot() >= ends:
            break
    return unparked


async def is_any_parked(db: Db, types: Sequence[str]) -> bool:
    """Whether a job of one of these types is parked; takes no lock."""
    return bool((await db.rows("is_any_parked", {"types": list(types)}))[0][0])


async def parked_types(db: Db) -> list[str]:
    """The types with parked jobs, one seek each."""
    found = [""]
    while rows := await db.rows("next_parked_type", {"after": found[-1]}):
        found.append(rows[0][0])
    return found[1:]


async def unpark(db: Db, types: Sequence[str]) -> int:
    """Unpark one batch of jobs of these types; returns how many."""
    rows = await db.rows("unpark", {"types": list(types), "limit": UNPARK_BATCH})
    await watermarks.lower(db, _lowest(row for row in rows if row[3] == Status.PENDING))
    return len(rows)


def _lowest(rows: Iterable[Any]) -> list[tuple[str, int, Micros]]:
    """The lowest rank per queue and priority."""
    lowest: dict[tuple[str, int], Micros] = {}
    for queue, sort_priority, rank, _ in rows:
        lowest[queue, sort_priority] = min(rank, lowest.get((queue, sort_priority), rank))
    return [(queue, sort_priority, rank) for (queue, sort_priority), rank in lowest.items()]


async def _known_types(db: Db) -> list[str]:
    """Every type that a live worker knows."""
    return sorted({type_ for worker in await live_workers(db) for type_ in worker.types})
