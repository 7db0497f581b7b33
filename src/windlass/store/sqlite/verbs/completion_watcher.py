"""Signals callers that their jobs have finished, whichever process finished them.

After each commit that the commit watcher sees, one read finds the jobs that are no longer live. Then the watcher
pauses for nine times the duration of that read, at most 0.1 s.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from contextvars import Context
from typing import Any

from windlass.core.ids import JobId
from windlass.errors import StoreUnavailable
from windlass.store.contract_upkeep import OnEnded
from windlass.store.sqlite.connection.access import Access
from windlass.store.sqlite.db import array

PAUSE_FACTOR = 9
"""The pause after a read, as a multiple of its duration."""
MAX_PAUSE_SECONDS = 0.1
WAIT_SECONDS = 10.0


class SqliteCompletionWatcher:
    """One read after each commit, for all callers on one event loop."""

    outage = None

    def __init__(self, access: Access, on_ended: OnEnded) -> None:
        self._access = access
        self._on_ended = on_ended
        self._watched: set[JobId] = set()
        self._task: asyncio.Task[None] | None = None

    def watch(self, job: JobId, queue: str) -> None:
        """Watch a job. It is also reported once at the start, so that the caller reads what was committed before."""
        if job in self._watched:
            return
        self._watched.add(job)
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run(self._access.threads.commits.version()), context=Context())
        loop.call_soon(self._on_ended, (job,))

    def unwatch(self, job: JobId) -> None:
        self._watched.discard(job)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, cursor: int) -> None:
        """Run while any job is watched."""
        commits, loop = self._access.threads.commits, asyncio.get_running_loop()
        while self._watched:
            if not await commits.wait(cursor, WAIT_SECONDS):
                continue
            began, cursor = loop.time(), commits.version()
            with contextlib.suppress(StoreUnavailable):  # callers poll too
                self._announce(await self._read(array(list(self._watched))))
            await asyncio.sleep(min(PAUSE_FACTOR * (loop.time() - began), MAX_PAUSE_SECONDS))

    async def _read(self, watched: str) -> list[Any]:
        return await self._access.read(lambda db: db.rows("not_live", {"ids": watched}))

    def _announce(self, rows: Sequence[tuple[JobId]]) -> None:
        finished = self._watched.intersection(row[0] for row in rows)
        self._watched -= finished
        if finished:
            self._on_ended(finished)
