"""expire: waiting jobs whose time is over are cancelled."""

from windlass.store.redis.access import Access


async def expire(access: Access, limit: int) -> int:
    raise NotImplementedError
