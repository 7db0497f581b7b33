"""claim: a runner takes pending jobs, best first; repeating a claim returns the same jobs."""

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Claimed
from windlass.errors import LeaseLost
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.expire import SWEPT_BY_A_CLAIM, clear_heads, expire, is_any_due
from windlass.store.sqlite.fair import take_fairly
from windlass.store.sqlite.leases import holds_lease
from windlass.store.sqlite.mend import text_of
from windlass.store.sqlite.recall import Recall
from windlass.store.sqlite.ruled import Ruled
from windlass.store.sqlite.terms import terms_of

_decoder = msgspec.json.Decoder(list[Claimed])


def claim(db: Db, request: ClaimRequest, recall: Recall) -> list[Claimed]:
    """One atomic step under the runner's lease: a runner that was rescued gets nothing."""
    if not holds_lease(db, request.runner):
        raise LeaseLost(request.runner)
    # The reply to an earlier try may have been lost: the jobs it took are still under its number.
    jobs = _claimed(db, request)
    turns: list[JobId] = []
    if not jobs and _take(db, request, recall, turns):
        jobs = _claimed(db, request)
    if turns:
        turn = {id_: i for i, id_ in enumerate(turns)}
        jobs.sort(key=lambda job: turn.get(job.id, 0))
    if len(request.shares) > 1:
        place = {share.queue: i for i, share in enumerate(request.shares)}
        jobs.sort(key=lambda job: place.get(job.queue, len(place)))
    return jobs


def _take(db: Db, request: ClaimRequest, recall: Recall, turns: list[JobId]) -> int:
    """How many were taken; to `turns` come those of fair queues, in the order in which it was their turn."""
    now, types = db.now, array(request.types)
    expiring = is_any_due(db) and expire(db, SWEPT_BY_A_CLAIM) == SWEPT_BY_A_CLAIM
    ruling = terms_of(db, now)
    taken = 0
    for share in request.shares:
        limit, terms = min(share.most, request.limit - taken), ruling.get(share.queue)
        if limit <= 0 or (terms is not None and terms.paused):
            continue
        values = {
            "runner": request.runner,
            "claim": request.claim,
            "now": now,
            "queue": share.queue,
            "types": types,
            "limit": limit,
        }
        if terms is not None:
            ruled = Ruled(db, values, terms, recall)
            values["limit"] = ruled.bound(request, taken)
            if not ruled.left:
                continue
        if expiring and not clear_heads(db, values):
            continue
        taken += db.run("claim", values) if terms is None or terms.plain else _take_ruled(ruled, turns)
    return taken


def _take_ruled(ruled: Ruled, turns: list[JobId]) -> int:
    if ruled.terms.fair:
        take_fairly(ruled)
        turns += ruled.taken
    else:
        ruled.take_in_line()
    return len(ruled.taken)


def _claimed(db: Db, request: ClaimRequest) -> list[Claimed]:
    found = text_of(db, "claimed", {"runner": request.runner, "claim": request.claim})
    if not found:
        return []
    try:
        return _decoder.decode(found)
    except msgspec.ValidationError:
        # Another program has put a strange value into a row. Whoever runs the job will see; the others must go on.
        return [Claimed(*row) for row in msgspec.json.decode(found)]
