"""Who waits for jobs to end is told after the commit that ended them, of whichever process that was.

Commits are seen as whoever waits for work sees them (signals.py). After each it is asked which of the jobs are still
alive: one look for all of them, at most a tenth of the time where commits follow one another.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from contextvars import Context
from typing import Any

from windlass.core.ids import JobId
from windlass.errors import StoreUnavailable
from windlass.store.sqlite.access import Access
from windlass.store.sqlite.db import array
from windlass.store.vigil import Tell

REST = 9
"""After a look, so many times what it took."""
LONGEST_REST = 0.1
WAIT_SECONDS = 10.0


class SqliteVigil:
    """One look after each commit, for all who wait on one event loop."""

    silence = None

    def __init__(self, access: Access, tell: Tell) -> None:
        self._access = access
        self._tell = tell
        self._watched: set[JobId] = set()
        self._task: asyncio.Task[None] | None = None

    def watch(self, job: JobId, queue: str) -> None:
        """What has been committed until now is seen by who looks when told; what comes is seen here."""
        if job in self._watched:
            return
        self._watched.add(job)
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run(self._access.lanes.watch.version()), context=Context())
        loop.call_soon(self._tell, (job,))

    def unwatch(self, job: JobId) -> None:
        self._watched.discard(job)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, mark: int) -> None:
        """As long as anything is watched."""
        commits, loop = self._access.lanes.watch, asyncio.get_running_loop()
        while self._watched:
            if not await commits.wait(mark, WAIT_SECONDS):
                continue
            began, mark = loop.time(), commits.version()
            with contextlib.suppress(StoreUnavailable):  # who waits looks for himself now and then
                self._announce(await self._look(array(list(self._watched))))
            await asyncio.sleep(min(REST * (loop.time() - began), LONGEST_REST))

    async def _look(self, watched: str) -> list[Any]:
        return await self._access.read(lambda db: db.rows("over", {"ids": watched}))

    def _announce(self, rows: Sequence[tuple[JobId]]) -> None:
        over = self._watched.intersection(row[0] for row in rows)
        self._watched -= over
        if over:
            self._tell(over)
