"""park: jobs whose type no live worker knows are set aside, so that claims need not walk past them for ever.

A worker that registers while jobs of its types are being parked may miss them; its next beat frees them.
"""

from collections.abc import Iterable
from typing import Any

from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.postgres import floors
from windlass.store.postgres.db import Db
from windlass.store.postgres.workers import live_workers

HEAD = 200
"""How far into each priority of a queue we look: what lies deeper is in nobody's way yet."""
MOST_PARKED = 1000
"""Of each priority of a queue, at a time."""
MOST_FREED = 10_000
"""Of each type with one beat, so that it does not take long; the next one goes on."""


async def needs_parking(db: Db) -> bool:
    """A look without a lock."""
    known = await _known(db)
    return bool(known) and bool(await db.rows("strangers", {"known": known, "limit": HEAD}))


async def park(db: Db) -> dict[str, int]:
    """Set strangers at the heads of queues aside: {type: jobs}. Without a live worker nobody is in anyone's way."""
    known = await _known(db)
    if not known:
        return {}
    return dict(map(tuple, await db.rows("park", {"known": known, "limit": MOST_PARKED})))


async def unpark(db: Db, types: tuple[str, ...]) -> int:
    """A worker that knows these types is here: their jobs go back to where they were."""
    rows = await db.rows("unpark", {"types": list(types), "limit": MOST_FREED})
    await floors.lower(db, _lowest(row for row in rows if row[3] == Status.PENDING))
    return len(rows)


def _lowest(rows: Iterable[Any]) -> list[tuple[str, int, Micros]]:
    """The lowest rank of each place."""
    places: dict[tuple[str, int], Micros] = {}
    for queue, urgency, rank, _ in rows:
        places[queue, urgency] = min(rank, places.get((queue, urgency), rank))
    return [(*place, rank) for place, rank in places.items()]


async def _known(db: Db) -> list[str]:
    """Every type that a live worker knows."""
    return sorted({type_ for worker in await live_workers(db) for type_ in worker.types})
