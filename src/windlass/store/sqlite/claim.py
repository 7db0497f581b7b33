"""claim: a runner takes pending jobs, best first; repeating a claim returns the same jobs."""

import msgspec

from windlass.core.job import Claimed
from windlass.errors import LeaseLost
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.expire import SWEPT_BY_A_CLAIM, clear_heads, expire, is_any_due
from windlass.store.sqlite.leases import holds_lease
from windlass.store.sqlite.mend import NotText

_decoder = msgspec.json.Decoder(list[Claimed])


def claim(db: Db, request: ClaimRequest) -> list[Claimed]:
    """One atomic step under the runner's lease: a runner that was rescued gets nothing."""
    if not holds_lease(db, request.runner):
        raise LeaseLost(request.runner)
    # The reply to an earlier try may have been lost: the jobs it took are still under its number.
    jobs = _claimed(db, request)
    if not jobs and _take(db, request):
        jobs = _claimed(db, request)
    if len(request.shares) > 1:
        place = {share.queue: i for i, share in enumerate(request.shares)}
        jobs.sort(key=lambda job: place.get(job.queue, len(place)))
    return jobs


def _take(db: Db, request: ClaimRequest) -> int:
    now, types = db.now, array(request.types)
    expiring = is_any_due(db) and expire(db, SWEPT_BY_A_CLAIM) == SWEPT_BY_A_CLAIM
    paused = {row[0] for row in db.rows("paused", {"now": now})}
    taken = 0
    for share in request.shares:
        limit = min(share.most, request.limit - taken)
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
        if expiring and not clear_heads(db, values):
            continue
        taken += db.run("claim", values)
    return taken


def _claimed(db: Db, request: ClaimRequest) -> list[Claimed]:
    try:
        found = db.rows("claimed", {"runner": request.runner, "claim": request.claim})[0][0]
    except Exception as error:
        if "cannot hold BLOB" in str(error):
            raise NotText from error
        raise
    try:
        return _decoder.decode(found) if found else []
    except msgspec.ValidationError:
        # Another program has put a strange value into a row. Whoever runs the job will see; the others must go on.
        return [Claimed(*row) for row in msgspec.json.decode(found)]
