"""claim: hold pending jobs for a runner, queue by queue, best first."""

from windlass.core.job import Claimed
from windlass.store.records import ClaimRequest
from windlass.store.redis.access import Access
from windlass.store.redis.hold import to_claimed
from windlass.store.redis.leases import NO_LEASE, embark


async def claim(access: Access, request: ClaimRequest) -> list[Claimed]:
    """An earlier queue is emptied before a later one."""
    jobs: list[Claimed] = []
    for share in request.shares:
        limit = min(share.most, request.limit - len(jobs))
        if limit <= 0:
            continue
        asked = (request.runner, request.claim, request.types, limit)
        reply = await access.call("claim", share.queue, asked)
        if reply == NO_LEASE:
            await embark(access, request.runner, [share.queue])
            reply = await access.call("claim", share.queue, asked)
        jobs += to_claimed(share.queue, request.runner, reply)
    return jobs
