"""held: what a runner runs, as far as the store knows."""

from windlass.store.records import Held
from windlass.store.redis.access import Access


async def held(access: Access, runner: str) -> list[Held]:
    raise NotImplementedError
