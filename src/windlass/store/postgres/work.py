"""A look without a lock: whether there is anything to do."""

from collections.abc import Sequence

from windlass.store.postgres.db import Db


async def has_work(db: Db, queues: Sequence[str], types: Sequence[str] | None) -> bool:
    """Whether a claim or an admission would find anything."""
    rows = await db.rows("work", {"queues": list(queues), "types": None if types is None else list(types)})
    return bool(rows[0][0])
