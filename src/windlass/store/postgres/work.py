"""A look without a lock: whether there is anything to do."""

from collections.abc import Sequence
from typing import Any

from windlass.core.rate import Bucket, refilled
from windlass.store.openings import Openings
from windlass.store.postgres.db import Db
from windlass.store.postgres.tolls import rate_of


async def has_work(db: Db, queues: Sequence[str], types: Sequence[str] | None, openings: Openings) -> bool:
    """Whether a claim or an admission would find anything: not in queues that are full or have no tokens."""
    shut = {row["name"] for row in await db.rows("terms", {"queues": list(queues)}) if _is_shut(row, openings)}
    opened = [queue for queue in queues if queue not in shut]
    rows = await db.rows("work", {"queues": opened, "types": None if types is None else list(types)})
    return bool(rows[0][0])


def _is_shut(row: Any, openings: Openings) -> bool:
    if openings.is_shut(row["name"], row["now"], row["rate_limit"]):
        return True
    if row["max_concurrency"] is not None and row["running"] >= row["max_concurrency"]:
        return True
    rate = rate_of(row["rate_limit"])
    if rate is None or row["credit"] is None:
        return False
    return not refilled(Bucket(row["credit"], row["period"], row["at"]), rate, row["now"]).tokens
