"""tidy: what a dead producer or mover has left half done is finished or cleared away."""

from windlass.store.redis.access import Access


async def tidy(access: Access) -> None:
    raise NotImplementedError
