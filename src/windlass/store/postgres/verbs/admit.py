"""admit, age, expire, oldest: jobs become due, move up, or are too late."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.jobs.admission import EXPIRED
from windlass.core.moments import Micros
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.verbs.dependents import cancel_with_dependents
from windlass.store.records import Admitted

HEAD = 1000
"""Rows that are looked at in each priority, at least."""


async def admit(db: Db, limit: int) -> Admitted:
    """The earliest first; their rank is the moment of admission, behind those that wait already."""
    jobs, next_due_in = (await db.rows("admit", {"limit": limit}))[0]
    return Admitted(jobs, next_due_in)


async def age(db: Db, limit: int) -> int:
    """Raise up to `limit` jobs by one step each, and return how many. They keep their ranks."""
    places: list[tuple[str, int, int]] = []
    for queue, ageing in await db.rows("ageing"):
        if len(places) < limit:
            left = limit - len(places)
            values = {"queue": queue, "ageing": ageing, "limit": left, "head": max(HEAD, left)}
            places += [tuple(row) for row in await db.rows("age", values)]
    await watermarks.lower(db, places)
    return len(places)


async def is_any_due(db: Db) -> bool:
    """A look without a lock."""
    return bool((await db.rows("is_any_expired"))[0][0])


async def expire(db: Db, limit: int) -> Sequence[JobId]:
    """The longest expired first; returns their ids."""
    ids = [str(row[0]) for row in await db.rows("lock_expired", {"limit": limit})]
    await cancel_with_dependents(db, dict.fromkeys(ids, EXPIRED))
    return ids


async def oldest(db: Db) -> dict[str, Micros]:
    """A rank is the moment from which a job waits, and the index has the lowest first."""
    return dict(map(tuple, await db.rows("oldest")))
