"""admit: due jobs become pending, and get their rank."""

from windlass.store.records import Admitted
from windlass.store.redis.access import Access
from windlass.store.redis.sweep import sweep


async def admit(access: Access, limit: int) -> Admitted:
    """The earliest first, in whatever queue they are."""
    swept = await sweep(access, "admit", limit)
    return Admitted(swept.jobs, swept.next_in)
