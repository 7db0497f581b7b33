"""park: jobs whose type no live worker knows are set aside, so that claims do not scan them again and again.

A heartbeat frees a portion of the jobs that its worker knows; the duty frees the rest, and those that were parked
while the worker came.
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
"""Rows that are looked at in each priority of a queue."""
MAX_PARKED = 1000
"""Per priority of a queue, in one call."""
UNPARK_BATCH = 1000
"""Jobs unparked by one transaction."""
MAX_UNPARK_TIME: Micros = SECOND // 2
"""How long one call frees jobs: other duties wait."""
BEAT_SECONDS = 1.0
"""How long a heartbeat frees jobs."""


async def needs_parking(db: Db) -> bool:
    """A look without a lock."""
    known = await _known_types(db)
    return bool(known) and bool(await db.rows("unknown_types", {"known": known, "limit": HEAD}))


async def park(db: Db) -> dict[str, int]:
    """Park jobs of unknown types at the heads of queues; returns {type: jobs}. Nothing is parked without a live
    worker."""
    known = await _known_types(db)
    if not known:
        return {}
    return dict(map(tuple, await db.rows("park", {"known": known, "limit": MAX_PARKED})))


async def unpark_known(access: Access) -> int:
    """Free parked jobs of types that a live worker knows, within the time; returns how many."""
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
    """Whether a job of one of these types is parked; read without a lock."""
    return bool((await db.rows("is_any_parked", {"types": list(types)}))[0][0])


async def parked_types(db: Db) -> list[str]:
    """The types with parked jobs, one seek each."""
    found = [""]
    while rows := await db.rows("next_parked_type", {"after": found[-1]}):
        found.append(rows[0][0])
    return found[1:]


async def unpark(db: Db, types: Sequence[str]) -> int:
    """Free a portion of the parked jobs of these types; returns how many."""
    rows = await db.rows("unpark", {"types": list(types), "limit": UNPARK_BATCH})
    await watermarks.lower(db, _lowest(row for row in rows if row[3] == Status.PENDING))
    return len(rows)


def _lowest(rows: Iterable[Any]) -> list[tuple[str, int, Micros]]:
    """The lowest rank per queue and priority."""
    places: dict[tuple[str, int], Micros] = {}
    for queue, sort_priority, rank, _ in rows:
        places[queue, sort_priority] = min(rank, places.get((queue, sort_priority), rank))
    return [(*place, rank) for place, rank in places.items()]


async def _known_types(db: Db) -> list[str]:
    """Every type that a live worker knows."""
    return sorted({type_ for worker in await live_workers(db) for type_ in worker.types})
