"""Queues and their settings."""

from windlass.core.moments import Micros
from windlass.core.queue import Queue, QueueSettings
from windlass.store.redis.access import Access


async def declare(access: Access, declared: dict[str, QueueSettings]) -> None:
    raise NotImplementedError


async def change(access: Access, name: str, changed: QueueSettings, was: QueueSettings | None) -> Queue:
    raise NotImplementedError


async def pause(access: Access, name: str, length: Micros | None) -> Queue:
    raise NotImplementedError


async def resume(access: Access, name: str) -> Queue:
    raise NotImplementedError


async def close(access: Access, name: str) -> Queue:
    raise NotImplementedError


async def open_(access: Access, name: str) -> Queue:
    raise NotImplementedError


async def all_queues(access: Access) -> list[Queue]:
    raise NotImplementedError
