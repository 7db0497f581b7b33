"""work: whether anything may be claimed, without a lock."""

from collections.abc import Sequence

from windlass.store.redis.access import Access


async def has_work(access: Access, queues: Sequence[str], types: Sequence[str] | None) -> bool:
    raise NotImplementedError
