"""A listener of a completion watcher, for tests."""

import asyncio
import contextlib
from collections.abc import Collection

from windlass import App
from windlass.core.ids import JobId
from windlass.store.contract import Store
from windlass.store.contract_upkeep import CompletionWatcher

PATIENCE_SECONDS = 30
"""Only so that a test that would wait for ever fails."""


class Reported:
    """What a completion watcher has reported and no test has read yet."""

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
        reported = self.jobs.issuperset(jobs)
        self.jobs.difference_update(jobs)
        return reported


async def watched(store: Store, *jobs: JobId, queue: str = "default") -> tuple[CompletionWatcher, Reported]:
    """A completion watcher of these, from this moment on."""
    reported = Reported()
    watcher = store.signals.watch_completions(reported)
    for job in jobs:
        watcher.watch(job, queue)
    assert await reported.of(*jobs)
    return watcher, reported


async def looked(app: App) -> None:
    """When the waiter on this loop has seen that its job has not ended."""
    result_waiter = app._store_handle.result_waiter(await app._ready())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not result_waiter._again:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
