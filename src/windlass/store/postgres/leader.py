"""The coordinator's office: one holder at a time, and a term that grows with each; times are the server's."""

from windlass.store.postgres.db import Db
from windlass.store.records import Campaign


async def is_taken(db: Db, bid: Campaign) -> bool:
    """A look without a lock: whether somebody else holds the office."""
    return await office_holder(db) not in (None, bid.candidate)


async def campaign(db: Db, bid: Campaign) -> int | None:
    """Take the office if it is free, keep it if it is ours."""
    rows = await db.rows("take_office", {"holder": bid.candidate, "length": bid.length})
    return int(rows[0][0]) if rows else None


async def office_holder(db: Db) -> str | None:
    """Who holds the office now: not whose time is over."""
    rows = await db.rows("office")
    return str(rows[0][0]) if rows else None


async def resign(db: Db, candidate: str) -> None:
    """Leave the office, if it is ours."""
    await db.run("resign", {"holder": candidate})
