"""rescue: what a gone runner held is put back. The lease goes first, the jobs after it."""

from windlass.store.records import Rescued, RunnerEnd
from windlass.store.redis.access import Access


async def end_runner(access: Access, ended: RunnerEnd) -> list[Rescued]:
    raise NotImplementedError


async def rescue(access: Access, limit: int) -> list[Rescued]:
    raise NotImplementedError
