"""change: a waiting job is moved in time, in priority, or to another queue."""

from collections.abc import Sequence

from windlass.core.change import JobChange
from windlass.core.ids import JobId
from windlass.store.records import Moved
from windlass.store.redis.access import Access


async def change(access: Access, ids: Sequence[JobId], change: JobChange) -> list[Moved | None]:
    raise NotImplementedError
