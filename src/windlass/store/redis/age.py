"""age: jobs that have waited long move up."""

from windlass.store.redis.access import Access


async def age(access: Access, limit: int) -> int:
    raise NotImplementedError
