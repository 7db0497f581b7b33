"""Wake-up across processes: a number in the database file's shared memory changes with every commit.

Reading it takes microseconds and no lock, so one task per event loop reads it every few milliseconds for as long
as somebody waits, and tells them all.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import apsw

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db, array

POLL_SECONDS = 0.004


class _Vigil:
    """Those who wait on one event loop, and the task that looks for them while there are any."""

    def __init__(self, changed: asyncio.Future[None]) -> None:
        self.changed = changed
        self.waiting = 0
        self.poll: asyncio.Task[None]


class Watch:
    """Sees commits of every process, and tells whoever waits on any event loop."""

    def __init__(self, opener: Callable[[], Connection]) -> None:
        self._opener = opener
        self._connection: Connection | None = None
        self._seen = -1
        self._guard = threading.Lock()
        self._vigils: WeakKeyDictionary[asyncio.AbstractEventLoop, _Vigil] = WeakKeyDictionary()
        self._closed = False

    async def wait(self, seconds: float) -> bool:
        """Until a commit, or until the time is over: whether it was a commit."""
        vigil = self._vigil()
        vigil.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(vigil.changed)
                return True
        except TimeoutError:
            return False
        finally:
            vigil.waiting -= 1

    def _vigil(self) -> "_Vigil":
        loop = asyncio.get_running_loop()
        vigil = self._vigils.get(loop)
        if vigil is None or vigil.poll.done():
            vigil = self._vigils[loop] = _Vigil(loop.create_future())
            vigil.poll = loop.create_task(self._poll(vigil))
        return vigil

    async def _poll(self, vigil: "_Vigil") -> None:
        # Looks before it sleeps: a commit since the last look wakes at once, so none is missed in between.
        await asyncio.sleep(0)
        while vigil.waiting:
            if self._look():
                vigil.changed.set_result(None)
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


def has_work(db: Db, queues: Sequence[str], types: Sequence[str] | None) -> bool:
    """Whether a claim or an admission would find anything."""
    values = {"queues": array(queues), "types": None if types is None else array(types), "now": db.now}
    return bool(db.rows("work", values)[0][0])
