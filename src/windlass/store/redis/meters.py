"""Meters, added up as runners hand them in."""

from collections.abc import Sequence

from windlass.core.meter import Meter, Recent
from windlass.core.moments import Micros
from windlass.store.redis.access import Access


async def record(access: Access, meters: Sequence[Meter]) -> None:
    raise NotImplementedError


async def recent(access: Access, length: Micros) -> Recent:
    raise NotImplementedError


async def oldest(access: Access) -> dict[str, Micros]:
    raise NotImplementedError
