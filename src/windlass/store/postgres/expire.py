"""expire: waiting jobs that have not started by their `expires_at` are cancelled."""

from windlass.core.expiry import EXPIRED
from windlass.store.postgres.db import Db
from windlass.store.postgres.heirs import call_off


async def is_any_due(db: Db) -> bool:
    """A look without a lock."""
    return bool((await db.rows("is_any_expired"))[0][0])


async def expire(db: Db, limit: int) -> int:
    """The longest expired first: how many."""
    ids = [row[0] for row in await db.rows("lock_expired", {"limit": limit})]
    await call_off(db, dict.fromkeys(ids, EXPIRED))
    return len(ids)
