"""Who is told of jobs by a vigil, and waits for it."""

import asyncio
import contextlib
from collections.abc import Collection

from windlass import App
from windlass.core.ids import JobId
from windlass.store.contract import Store
from windlass.store.contract_upkeep import CompletionWatcher

PATIENCE_SECONDS = 30
"""Only so that a test that would wait for ever fails."""


class Told:
    """What a vigil has told and nobody has asked for yet."""

    def __init__(self) -> None:
        self.jobs: set[JobId] = set()
        self._news = asyncio.Event()

    def __call__(self, jobs: Collection[JobId]) -> None:
        self.jobs.update(jobs)
        self._news.set()

    async def of(self, *jobs: JobId) -> bool:
        """Whether all of these are told of; from then on they would have to be told of again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self.jobs.issuperset(jobs):
                    self._news.clear()
                    await self._news.wait()
        told = self.jobs.issuperset(jobs)
        self.jobs.difference_update(jobs)
        return told


async def watched(store: Store, *jobs: JobId, queue: str = "default") -> tuple[CompletionWatcher, Told]:
    """A vigil that watches these, from this moment on."""
    told = Told()
    vigil = store.signals.watch_completions(told)
    for job in jobs:
        vigil.watch(job, queue)
    assert await told.of(*jobs)
    return vigil, told


async def looked(app: App) -> None:
    """When whoever waits on this loop has seen that his job has not ended."""
    lookout = app._store_handle.result_waiter(await app._ready())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not lookout._again:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
