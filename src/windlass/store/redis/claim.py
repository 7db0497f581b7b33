"""claim: a runner takes pending jobs, queue by queue, best first; repeating a claim returns the same jobs.

Queues without rules are claimed from by a script that knows none; the others by one that knows all.
"""

from collections.abc import Sequence
from typing import Any

from windlass.core.job import Claimed
from windlass.errors import LeaseLost
from windlass.store.records import ClaimRequest, QueueShare
from windlass.store.redis.access import Access
from windlass.store.redis.hold import to_claimed
from windlass.store.redis.leases import NO_LEASE, check_lease, embark
from windlass.store.redis.work import open_queues

RULED = b"ruled"
"""What claim.lua answers if the queue, or one of the jobs that are next, is not plain."""
MOST_AT_ONCE = 250
"""No script may keep the server from others for long."""
MOST_LOOKS = 8
"""So often a claim looks on that was cut short before it found anything."""
EXPIRED = 1
"""What claim_ruled.lua answers if it was cut short by expired jobs."""


async def claim(access: Access, request: ClaimRequest) -> list[Claimed]:
    """An earlier queue is emptied before a later one."""
    shares = [share for share in request.shares if share.most > 0]
    if request.limit <= 0 or not shares:
        return []
    fresh = access.server.recall.ask(request.runner, request.claim)
    if len(shares) > 1 and not fresh:
        # The reply to an earlier try may have been lost: the jobs it took are still under its number.
        before = await _claimed_before(access, request, shares)
        if before:
            return before
    jobs = await _from(access, request, shares[0], 0)
    later = await _with_work(access, request, shares[1:]) if len(jobs) < request.limit else []
    for share in later:
        if len(jobs) < request.limit:
            jobs += await _from(access, request, share, len(jobs))
    return jobs


async def _with_work(access: Access, request: ClaimRequest, shares: Sequence[QueueShare]) -> Sequence[QueueShare]:
    """Those that may have anything: where they are several, one look at all of them."""
    if len(shares) < 2:
        return shares
    found = await open_queues(access, [share.queue for share in shares], request.types)
    return [share for share in shares if share.queue in found]


async def _from(access: Access, request: ClaimRequest, share: QueueShare, taken: int) -> list[Claimed]:
    """From one queue; `taken` were taken from others."""
    recall, queue = access.server.recall, share.queue
    limit = min(share.most, request.limit - taken, MOST_AT_ONCE)
    asked = (request.runner, request.claim, request.types, limit)
    if not recall.is_ruled(queue):
        reply = await _ask(access, "claim", queue, asked)
        if reply != RULED:
            return to_claimed(queue, request.runner, reply or ())
        recall.note_ruled(queue)
    free = None if request.free is None else request.free - taken
    return await _by_rule(access, queue, (*asked, request.limit, free))


async def _by_rule(access: Access, queue: str, asked: tuple[Any, ...]) -> list[Claimed]:
    """Under all terms. Where it saw only jobs that cannot start, and not all of them, it looks on."""
    openings = access.server.recall.openings
    openings.forget(queue)
    for _ in range(MOST_LOOKS):
        reply = await _ask(access, "claim_ruled", queue, asked)
        if reply is None:
            return []
        now, wait, rate, cut, found = reply
        if found or not cut:
            break
        if cut == EXPIRED:
            await access.call("expire", queue, MOST_AT_ONCE)
    if wait >= 0:
        openings.note(queue, now, wait, rate.decode())
    return to_claimed(queue, asked[0], found)


async def _ask(access: Access, name: str, queue: str, asked: tuple[Any, ...]) -> Any:
    """Under the runner's lease: one that was rescued gets nothing. No answer: there is no such queue."""
    reply = await access.call(name, queue, asked)
    if reply is None:
        await check_lease(access, asked[0])
    if reply == NO_LEASE:
        await embark(access, asked[0], [queue])
        reply = await access.call(name, queue, asked)
        if reply == NO_LEASE:
            raise LeaseLost(asked[0])
    return reply


async def _claimed_before(access: Access, request: ClaimRequest, shares: Sequence[QueueShare]) -> list[Claimed]:
    """What an earlier try has taken, in all of its queues: a claim of nothing takes nothing."""
    asked = (request.runner, request.claim, request.types, 0)
    replies = await access.calls("claim", {share.queue: (asked,) for share in shares})
    strangers = [queue for queue, reply in replies.items() if reply == NO_LEASE]
    if strangers:
        await embark(access, request.runner, strangers)
        replies |= await access.calls("claim", dict.fromkeys(strangers, (asked,)))
    if NO_LEASE in replies.values():
        raise LeaseLost(request.runner)
    return [job for queue, reply in replies.items() for job in to_claimed(queue, request.runner, reply)]
