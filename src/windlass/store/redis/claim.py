"""claim: hold pending jobs for a runner, queue by queue, best first."""

from windlass.core.job import Claimed
from windlass.store.records import ClaimRequest
from windlass.store.redis.access import Access
from windlass.store.redis.leases import NO_LEASE, embark
from windlass.store.redis.record import Record, unpack


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
        pairs = zip(reply[::2], reply[1::2], strict=True)
        jobs += [to_claimed(unpack(id_.decode(), value), share.queue) for id_, value in pairs]
    return jobs


def to_claimed(record: Record, queue: str) -> Claimed:
    """A job as its runner holds it."""
    fields = record.fields
    return Claimed(
        record.id,
        queue,
        fields.type,
        record.payload,
        record.attempt,
        record.max_attempts,
        record.failures,
        record.crashes,
        record.rescues,
        record.suspicions,
        record.hand_backs,
        record.snoozes,
        -record.urgency - record.lifted,
        record.run_at,
        record.created_at,
        record.claimed_at,
        fields.idempotency_key,
        fields.concurrency_key,
        fields.tenant,
        fields.parent,
        fields.flow,
        record.timeout,
        record.expires_at or None,
        fields.tags,
        fields.meta,
    )
