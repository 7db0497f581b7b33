"""age: who has waited long moves up to the next higher priority at which jobs wait."""

from windlass.store.postgres import floors
from windlass.store.postgres.db import Db


async def age(db: Db, limit: int) -> int:
    """Up to so many, each by one step: how many. They come to their new places with ranks from long ago."""
    places: list[tuple[str, int, int]] = []
    for queue, ageing in await db.rows("ageing"):
        if len(places) < limit:
            values = {"queue": queue, "ageing": ageing, "limit": limit - len(places)}
            places += [tuple(row) for row in await db.rows("age", values)]
    await floors.lower(db, places)
    return len(places)
