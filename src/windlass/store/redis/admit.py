"""admit: due jobs become pending, and get their rank."""

from windlass.store.records import Admitted
from windlass.store.redis.access import Access


async def admit(access: Access, limit: int) -> Admitted:
    raise NotImplementedError
