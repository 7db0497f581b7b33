"""expire: waiting jobs whose time is over are cancelled."""

from windlass.store.redis.access import Access
from windlass.store.redis.sweep import sweep


async def expire(access: Access, limit: int) -> int:
    """The longest expired first, in whatever queue they are."""
    return (await sweep(access, "expire", limit)).jobs
