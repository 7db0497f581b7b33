"""park: jobs whose type no worker knows are set aside, and freed when one comes."""

from collections.abc import Sequence

from windlass.store.redis.access import Access


async def park(access: Access) -> dict[str, int]:
    raise NotImplementedError


async def unpark(access: Access, types: Sequence[str]) -> None:
    raise NotImplementedError
