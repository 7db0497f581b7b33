"""The coordinator's office."""

from windlass.store.records import Campaign
from windlass.store.redis.access import Access


async def campaign(access: Access, bid: Campaign) -> int | None:
    raise NotImplementedError


async def resign(access: Access, candidate: str) -> None:
    raise NotImplementedError
