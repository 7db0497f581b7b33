"""counts and failures: cheap, however many jobs there are."""

from windlass.core.job import Job
from windlass.store.records import Counts
from windlass.store.redis.access import Access


async def counts(access: Access) -> Counts:
    raise NotImplementedError


async def failures(access: Access, limit: int) -> list[Job]:
    raise NotImplementedError
