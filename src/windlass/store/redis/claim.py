"""claim: hold pending jobs for a runner, queue by queue, best first."""

from windlass.core.job import Claimed
from windlass.store.records import ClaimRequest
from windlass.store.redis.access import Access
from windlass.store.redis.hold import to_claimed


async def claim(access: Access, request: ClaimRequest) -> list[Claimed]:
    """An earlier queue is emptied before a later one."""
    jobs: list[Claimed] = []
    for share in request.shares:
        limit = min(share.most, request.limit - len(jobs))
        if limit <= 0:
            continue
        reply = await access.call("claim", share.queue, (request.runner, request.claim, request.types, limit))
        jobs += to_claimed(share.queue, request.runner, reply)
    return jobs
