"""claim: assign pending jobs to a runner, best first; repeating a claim returns the same jobs."""

from collections.abc import Sequence

import msgspec

from windlass.core.flow.rate import ready_at
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed
from windlass.errors import LeaseLost
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.limited_claim import LimitedClaim, take_fairly
from windlass.store.sqlite.limits.limits import ClaimMemory, QueueLimits, limits_of, queue_token_bucket
from windlass.store.sqlite.liveness.leases import has_lease, holds_lease
from windlass.store.sqlite.verbs.cancel import MAX_EXPIRED_BY_CLAIM, expire, expire_heads, is_any_expired

_decoder = msgspec.json.Decoder(list[Claimed])


def claim(db: Db, request: ClaimRequest, memory: ClaimMemory) -> list[Claimed]:
    """Claim jobs under the runner's lease; a runner whose jobs were rescued gets none."""
    if not holds_lease(db, request.runner):
        if not has_lease(db, request.runner):
            raise LeaseLost(request.runner)
        return []  # the next renewal shows whether the lease is lost
    # The reply to an earlier try may have been lost: its jobs have the number of this claim.
    jobs = _claimed(db, request)
    fair_order: list[JobId] = []
    if not jobs and _take(db, request, memory, fair_order):
        jobs = _claimed(db, request)
    if fair_order:
        turn = {id_: i for i, id_ in enumerate(fair_order)}
        jobs.sort(key=lambda job: turn.get(job.id, 0))
    if len(request.quotas) > 1:
        position = {quota.queue: i for i, quota in enumerate(request.quotas)}
        jobs.sort(key=lambda job: position.get(job.queue, len(position)))
    return jobs


def _take(db: Db, request: ClaimRequest, memory: ClaimMemory, fair_order: list[JobId]) -> int:
    """Take jobs; returns how many. The ids of those from fair queues are added to `fair_order`, in their order."""
    now, types = db.now, array(request.types)
    expiring = is_any_expired(db) and len(expire(db, MAX_EXPIRED_BY_CLAIM)) == MAX_EXPIRED_BY_CLAIM
    limited = limits_of(db, now)
    taken = 0
    for quota in request.quotas:
        limit, limits = min(quota.limit, request.limit - taken), limited.get(quota.queue)
        if limit <= 0 or (limits is not None and limits.paused):
            continue
        values = {
            "runner": request.runner,
            "claim": request.claim,
            "now": now,
            "queue": quota.queue,
            "types": types,
            "limit": limit,
        }
        if limits is not None:
            part = LimitedClaim(db, values, limits, memory)
            values["limit"] = part.apply_limits(request, taken)
            if not part.room:
                continue
        if expiring and not expire_heads(db, values):
            continue
        taken += db.run("claim", values) if limits is None or limits.plain else _take_limited(part, fair_order)
    return taken


def _take_limited(part: LimitedClaim, fair_order: list[JobId]) -> int:
    if part.limits.fair:
        take_fairly(part)
        fair_order += part.taken
    else:
        part.take_in_order()
    return len(part.taken)


def _claimed(db: Db, request: ClaimRequest) -> list[Claimed]:
    found = db.text("claimed", {"runner": request.runner, "claim": request.claim})
    if not found:
        return []
    try:
        return _decoder.decode(found)
    except msgspec.ValidationError:
        # Another program has stored a value of a wrong type: that job alone must fail, in the runner.
        return [Claimed(*row) for row in msgspec.json.decode(found)]


def has_work(db: Db, queues: Sequence[str], types: Sequence[str] | None, memory: ClaimMemory) -> bool:
    """Whether a claim from these queues, or an admission, would find anything; takes no lock."""
    now = db.now
    limited = limits_of(db, now)
    ready = [name for name in queues if name not in limited or not _is_exhausted(db, name, limited[name], memory)]
    values = {"queues": array(ready), "types": None if types is None else array(types), "now": now}
    return bool(db.rows("has_work", values)[0][0])


def _is_exhausted(db: Db, queue: str, limits: QueueLimits, memory: ClaimMemory) -> bool:
    if limits.paused or memory.is_exhausted(queue, limits):
        return True
    if limits.max_concurrency is not None:
        ((running,),) = db.rows("count_running", {"queue": queue})
        if running >= limits.max_concurrency:
            return True
    if limits.rate is not None and not (token_bucket := queue_token_bucket(db, queue, limits.rate)).tokens:
        memory.set_exhausted(queue, ready_at(token_bucket, limits.rate, 1), limits)
        return True
    return False
