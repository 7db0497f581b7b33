"""list and select: pages of jobs, by bounded walks."""

from windlass.core.ids import JobId
from windlass.store.records import JobFilter, JobPage
from windlass.store.redis.access import Access


async def list_jobs(access: Access, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    raise NotImplementedError


async def select(access: Access, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    raise NotImplementedError
