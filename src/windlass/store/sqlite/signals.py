"""Wake-up across processes: a number in the database file's shared memory changes with every commit.

Reading it takes microseconds and no lock, so one task per event loop reads it every few milliseconds for as long
as somebody waits, and tells them all.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

import apsw

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db, array

POLL_SECONDS = 0.004


class Watch:
    """Sees commits of every process, and tells whoever waits on any event loop."""

    def __init__(self, opener: Callable[[], Connection]) -> None:
        self._opener = opener
        self._connection: Connection | None = None
        self._seen = -1
        self._guard = threading.Lock()
        self._changed: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[None]] = WeakKeyDictionary()
        self._closed = False

    async def wait(self, seconds: float) -> bool:
        """Until a commit, or until the time is over: whether it was a commit."""
        loop = asyncio.get_running_loop()
        changed = self._changed.get(loop)
        if changed is None or changed.done():
            changed = self._changed[loop] = loop.create_future()
            poll = loop.create_task(self._poll(changed))
            changed.add_done_callback(lambda _: poll.cancel())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(changed)
                return True
        return False

    async def _poll(self, changed: asyncio.Future[None]) -> None:
        # Reads before it sleeps: a commit since the last look wakes at once, so none is missed in between.
        while not changed.done():
            if self._look():
                changed.set_result(None)
                return
            await asyncio.sleep(POLL_SECONDS)

    def _look(self) -> bool:
        with self._guard:
            if self._closed:
                return True
            try:
                if self._connection is None:
                    self._connection = self._opener()
                version = self._connection.data_version()
            except (apsw.Error, StoreUnavailable):
                return False  # a hint lost; whoever waits polls anyway
            changed = version != self._seen
            self._seen = version
            return changed

    def close(self) -> None:
        """Wake everybody for the last time."""
        with self._guard:
            self._closed = True
            if self._connection is not None:
                self._connection.close()


def has_work(db: Db, queues: list[str]) -> bool:
    """Whether a claim or an admission would find anything."""
    return bool(db.rows("work", {"queues": array(queues), "now": db.now})[0][0])
