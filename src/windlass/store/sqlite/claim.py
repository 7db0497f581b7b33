"""claim: a runner takes pending jobs, best first; repeating a claim returns the same jobs."""

from typing import Any

from windlass.core.job import Claimed
from windlass.errors import LeaseLost
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.leases import holds_lease

_PRIORITY = Claimed.__struct_fields__.index("priority")


def claim(db: Db, request: ClaimRequest) -> list[Claimed]:
    """One atomic step under the runner's lease: a runner that was rescued gets nothing."""
    if not holds_lease(db, request.runner):
        raise LeaseLost(request.runner)
    # The reply to an earlier try may have been lost: the jobs it took are still under its number.
    rows = db.rows("claimed", {"runner": request.runner, "claim": request.claim})
    if rows:
        place = {share.queue: i for i, share in enumerate(request.shares)}
        rows.sort(key=lambda row: place.get(row[1], len(place)))
    else:
        rows = _take(db, request)
    return [Claimed(*row[:-1]) for row in rows]


def _take(db: Db, request: ClaimRequest) -> list[Any]:
    now, types = db.now, array(request.types)
    paused = {row[0] for row in db.rows("paused", {"now": now})}
    taken: list[Any] = []
    for share in request.shares:
        limit = min(share.most, request.limit - len(taken))
        if limit <= 0 or share.queue in paused:
            continue
        values = {
            "runner": request.runner,
            "claim": request.claim,
            "now": now,
            "queue": share.queue,
            "types": types,
            "limit": limit,
        }
        taken += sorted(db.rows("claim", values), key=_best_first)
    return taken


def _best_first(row: Any) -> tuple[int, int, str]:
    """RETURNING promises no order."""
    return -row[_PRIORITY], row[-1], row[0]
