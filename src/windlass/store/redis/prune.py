"""prune: finished jobs whose retention is over go, a bounded number at a time."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.store.redis.access import Access


async def prune(access: Access, limit: int) -> Sequence[JobId]:
    raise NotImplementedError
