"""claim: a runner takes pending jobs, queue by queue, best first; repeating a claim returns the same jobs.

Queues without rules are claimed from by a script that knows none; the others by one that knows all.
"""

from collections.abc import Sequence
from typing import Any

from windlass.core.jobs.job import Claimed
from windlass.errors import StoreUnavailable
from windlass.store.records import ClaimRequest, QueueQuota
from windlass.store.redis.connection.access import Access, QueueErrors
from windlass.store.redis.liveness.leases import NO_LEASE, allow_runner, check_lease
from windlass.store.redis.verbs.claimed_jobs import to_claimed

LIMITED = b"limited"
"""What claim.lua answers if the queue, or one of the jobs that are next, is not plain."""
MAX_AT_ONCE = 500
"""No script may keep the server from others for long."""
MAX_LIMITED = 250
"""Under rules each costs more."""
NEAR_MAX_TEXT = 900_000
"""Bytes of records from which on a claim may be cut short: its scripts stop at a megabyte."""
MAX_EXPIRED = 100
MAX_RETRIES = 8
"""How often a claim that found nothing and was cut short goes on."""
EXPIRED = 1
"""What claim_ruled.lua answers if it was cut short by expired jobs."""


async def claim(access: Access, request: ClaimRequest) -> list[Claimed]:
    """An earlier queue is emptied before a later one."""
    quotas = [quota for quota in request.quotas if quota.limit > 0]
    if request.limit <= 0 or not quotas:
        return []
    fresh = access.server.claim_memory.ask(request.runner, request.claim)
    if len(quotas) > 1 and not fresh:
        # The reply to an earlier try may have been lost: the jobs it took are still under its number.
        before = await _claimed_before(access, request, quotas)
        if before is None or before:
            return before or []
    jobs: list[Claimed] = []
    troubles = QueueErrors()
    await _add(access, request, quotas[0], jobs, troubles)
    later = await _with_work(access, request, quotas[1:]) if len(jobs) < request.limit else []
    for quota in later:
        if len(jobs) < request.limit:
            await _add(access, request, quota, jobs, troubles)
    if troubles and not jobs and (len(troubles) == len(quotas) or any(each.maybe_done for each in troubles)):
        raise troubles[0]  # asked again under the same number, this finds what was taken by a call without an answer
    return jobs


async def _add(
    access: Access, request: ClaimRequest, quota: QueueQuota, jobs: list[Claimed], troubles: QueueErrors
) -> None:
    """Claim from one queue. An unreachable one does not prevent claims from others."""
    try:
        jobs += await _from(access, request, quota, len(jobs))
    except StoreUnavailable as error:
        if error.lasting or not access.clustered:
            raise
        troubles.append(error)


async def _with_work(access: Access, request: ClaimRequest, quotas: Sequence[QueueQuota]) -> Sequence[QueueQuota]:
    """Those that may have anything: where they are several, one look at all of them."""
    if len(quotas) < 2:
        return quotas
    found = await open_queues(access, [quota.queue for quota in quotas], request.types)
    return [quota for quota in quotas if quota.queue in found]


async def _from(access: Access, request: ClaimRequest, quota: QueueQuota, taken: int) -> list[Claimed]:
    """From one queue; `taken` were taken from others."""
    memory, queue = access.server.claim_memory, quota.queue
    limit = min(quota.limit, request.limit - taken, MAX_AT_ONCE)
    asked = (request.runner, request.claim, request.types, limit)
    if not memory.is_limited(queue):
        reply = await _ask(access, "claim", queue, asked)
        if reply != LIMITED:
            _note_cut(access, queue, reply or (), limit)
            return to_claimed(queue, request.runner, reply or ())
        memory.note_limited(queue)
    free = None if request.free is None else request.free - taken
    limited = (*asked[:3], min(limit, MAX_LIMITED), request.limit, free)
    return await _claim_limited(access, queue, limited)


async def _claim_limited(access: Access, queue: str, asked: tuple[Any, ...]) -> list[Claimed]:
    """Under all terms. Where it saw only jobs that cannot start, and not all of them, it looks on."""
    rate_waits = access.server.claim_memory.rate_waits
    rate_waits.forget(queue)
    for _ in range(MAX_RETRIES):
        reply = await _ask(access, "claim_limited", queue, asked)
        if reply is None:
            return []
        now, wait, rate, cut, found = reply
        if found or not cut:
            break
        if cut == EXPIRED:
            await access.call("expire", queue, MAX_EXPIRED)
    _note_cut(access, queue, found, asked[3])
    if wait >= 0:
        rate_waits.note(queue, now, wait, rate.decode())
    return to_claimed(queue, asked[0], found)


def _note_cut(access: Access, queue: str, found: Sequence[bytes], limit: int) -> None:
    """A claim that is cut short because its jobs are much text is followed by the next one at once."""
    if len(found) < 2 * limit and sum(map(len, found[1::2])) > NEAR_MAX_TEXT:
        access.server.claim_memory.rate_waits.note(queue, 0, 0, None)


async def _ask(access: Access, name: str, queue: str, asked: tuple[Any, ...]) -> Any:
    """Under the runner's lease: one that was rescued gets nothing. No answer: there is no such queue, or the lease is
    over, and whether it is lost is found out by the next renewal.
    """
    reply = await access.call(name, queue, asked)
    if reply is None:
        await check_lease(access, asked[0])
    if reply == NO_LEASE and await allow_runner(access, asked[0], [queue]):
        reply = await access.call(name, queue, asked)
    return None if reply == NO_LEASE else reply


async def _claimed_before(
    access: Access, request: ClaimRequest, quotas: Sequence[QueueQuota]
) -> list[Claimed] | None:
    """What an earlier try has taken, in all of its queues: a claim of nothing takes nothing.

    None: the lease is over.
    """
    asked = (request.runner, request.claim, request.types, 0)
    replies, _ = await access.call_reachable("claim", {quota.queue: (asked,) for quota in quotas})
    without_lease = [queue for queue, reply in replies.items() if reply == NO_LEASE]
    if without_lease and await allow_runner(access, request.runner, without_lease):
        replies |= (await access.call_reachable("claim", dict.fromkeys(without_lease, (asked,))))[0]
    if NO_LEASE in replies.values():
        return None
    return [job for queue, reply in replies.items() for job in to_claimed(queue, request.runner, reply)]


async def has_work(access: Access, queues: Sequence[str], types: Sequence[str] | None) -> bool:
    """Whether anything is due, or jobs wait in queues that are not paused, full or without tokens.

    Of any type: also whether a child may go on, and only has not been told yet.
    """
    replies, troubles = await access.call_reachable("has_work", dict.fromkeys(queues, ((types,),)))
    soon = any(due or telling for _, due, *_, telling in replies.values())
    if not _opened(access, replies) and not soon:
        if troubles:
            raise troubles[0]  # an unreachable queue may have work
        return False
    return True


async def open_queues(access: Access, queues: Sequence[str], types: Sequence[str]) -> set[str]:
    """Those of which a claim may get anything, among those that can be reached."""
    replies, troubles = await access.call_reachable("has_work", dict.fromkeys(queues, ((types,),)))
    if troubles and not replies:
        raise troubles[0]
    return _opened(access, replies)


def _opened(access: Access, replies: dict[str, tuple[int, int, int, int, bytes, int]]) -> set[str]:
    """Those in which jobs wait that can start now. When the others have tokens again is remembered."""
    rate_waits, opened = access.server.claim_memory.rate_waits, set()
    for queue, (now, _, waiting, wait, rate, _) in replies.items():
        if wait >= 0:
            rate_waits.note(queue, now, wait, rate.decode())
        elif waiting and not rate_waits.is_shut(queue, now, rate.decode()):
            opened.add(queue)
    return opened
