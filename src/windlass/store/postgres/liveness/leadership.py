"""Leadership: one coordinator at a time, and a term that grows with each; times are the server's."""

from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.liveness.workers import forget_dead
from windlass.store.records import Campaign


async def is_taken(db: Db, bid: Campaign) -> bool:
    """Whether another process is the leader; read without a lock."""
    return await current_leader(db) not in (None, bid.candidate)


async def campaign(db: Db, bid: Campaign) -> int | None:
    """Acquire leadership if it is free, or renew ours; returns the term. The leader deletes dead workers."""
    rows = await db.rows("acquire_leadership", {"holder": bid.candidate, "length": bid.length})
    if not rows:
        return None
    await forget_dead(db)
    return int(rows[0][0])


async def current_leader(db: Db) -> str | None:
    """The current leader, unless its time is over."""
    rows = await db.rows("leader")
    return str(rows[0][0]) if rows else None


async def resign(db: Db, candidate: str) -> None:
    """Give up leadership, if it is ours."""
    await db.run("resign", {"holder": candidate})
