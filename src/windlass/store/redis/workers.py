"""The registry of workers."""

from windlass.store.records import WorkerInfo
from windlass.store.redis.access import Access


async def beat(access: Access, worker: WorkerInfo) -> None:
    raise NotImplementedError


async def forget(access: Access, worker: str) -> None:
    raise NotImplementedError


async def live_workers(access: Access) -> list[WorkerInfo]:
    raise NotImplementedError
