"""cancel, retry, run_now, delete: what people do with jobs."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.store.records import Moved
from windlass.store.redis.access import Access


async def cancel(access: Access, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
    raise NotImplementedError


async def retry(access: Access, ids: Sequence[JobId]) -> list[Moved | None]:
    raise NotImplementedError


async def run_now(access: Access, ids: Sequence[JobId]) -> list[Moved | None]:
    raise NotImplementedError


async def delete(access: Access, ids: Sequence[JobId]) -> list[Moved | None]:
    raise NotImplementedError
