"""expire: waiting jobs that have not started by their `expires_at` are cancelled."""

from collections.abc import Mapping
from typing import Any

from windlass.core.expiry import EXPIRED
from windlass.store.sqlite.cancel import call_off
from windlass.store.sqlite.db import Db

SWEPT_BY_A_CLAIM = 100
"""So that the expired go away without a coordinator too, and no claim takes long for it."""
MOST_CLEARED = 1000


def is_any_due(db: Db) -> bool:
    """A look without a lock, and the claim's: one step in an index that is empty unless jobs expire."""
    return bool(db.rows("expired", {"now": db.now, "limit": 1}))


def expire(db: Db, limit: int) -> int:
    """The longest expired first: how many."""
    ids = [row[0] for row in db.rows("expired", {"now": db.now, "limit": limit})]
    call_off(db, dict.fromkeys(ids, EXPIRED))
    return len(ids)


def clear_heads(db: Db, values: Mapping[str, Any]) -> bool:
    """Cancel what has expired among the jobs that this claim would take, until none has.

    False: there are too many for one transaction, and this queue has nothing to give now.
    """
    wanted = {name: values[name] for name in ("queue", "types", "limit", "now")}
    cleared = 0
    while ids := [row[0] for row in db.rows("expired_heads", wanted)]:
        call_off(db, dict.fromkeys(ids, EXPIRED))
        cleared += len(ids)
        if cleared >= MOST_CLEARED:
            return False
    return True
