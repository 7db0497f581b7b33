"""expire: waiting jobs whose time is over are cancelled."""

from windlass.store.redis.access import Access
from windlass.store.redis.heirs import follow
from windlass.store.redis.sweep import sweep


async def expire(access: Access, limit: int) -> int:
    """The longest expired first, in whatever queue they are; who waits for them is told."""
    expired = (await sweep(access, "expire", limit)).jobs
    if expired:
        await follow(access, await access.queue_names())
    return expired
