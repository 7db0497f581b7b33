"""admit, age, expire, oldest: jobs that become due, get a higher priority, or expire."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.jobs.admission import EXPIRED
from windlass.core.moments import Micros
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.verbs.dependents import cancel_with_dependents
from windlass.store.records import Admitted

HEAD = 1000
"""Jobs of each priority that ageing reads, at least."""


async def admit(db: Db, limit: int) -> Admitted:
    """Admit the earliest due jobs; their rank is the moment of admission, so they come after the pending ones."""
    jobs, next_due_in = (await db.rows("admit", {"limit": limit}))[0]
    return Admitted(jobs, next_due_in)


async def age(db: Db, limit: int) -> int:
    """Move up to `limit` jobs to the next higher priority with pending jobs, at their ranks; returns how many."""
    moved: list[tuple[str, int, int]] = []
    for queue, ageing in await db.rows("ageing"):
        if len(moved) < limit:
            left = limit - len(moved)
            values = {"queue": queue, "ageing": ageing, "limit": left, "head": max(HEAD, left)}
            moved += [tuple(row) for row in await db.rows("age", values)]
    await watermarks.lower(db, moved)
    return len(moved)


async def is_any_due(db: Db) -> bool:
    """Whether `expire` would find anything; takes no lock."""
    return bool((await db.rows("is_any_expired"))[0][0])


async def expire(db: Db, limit: int) -> Sequence[JobId]:
    """Cancel waiting jobs past their `expires_at`, the longest expired first; returns their ids."""
    ids = [str(row[0]) for row in await db.rows("lock_expired", {"limit": limit})]
    await cancel_with_dependents(db, dict.fromkeys(ids, EXPIRED))
    return ids


async def oldest(db: Db) -> dict[str, Micros]:
    """How long the oldest pending job of each queue has waited, by the lowest rank of each priority in the index."""
    return dict(map(tuple, await db.rows("oldest")))
