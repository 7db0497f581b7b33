"""Wake-up across processes: a number in the database file's shared memory changes with every commit.

Reading it takes microseconds and no lock. One task per event loop reads it for as long as somebody waits, and tells
them all: when the kernel gives notice of a commit, and every few milliseconds where it does not.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import apsw

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.notices import Notices

POLL_SECONDS = 0.004
RECHECK_SECONDS = 0.05
"""With notices, for commits of programs that are not ours."""


class _Vigil:
    """Those who wait on one event loop, and the task that looks for them while there are any."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.seen = -1
        self.waiting = 0
        self.changed: asyncio.Future[None]
        self.poll: asyncio.Task[None] | None = None


class Watch:
    """Sees commits of every process, and tells whoever waits on any event loop."""

    def __init__(self, opener: Callable[[], Connection], touched: Path) -> None:
        """`touched` is a file that our own writers touch after each commit."""
        self._opener = opener
        self._touched = touched
        self._connection: Connection | None = None
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
        if vigil is None:
            vigil = self._vigils[loop] = _Vigil(Notices(self._touched))
        if vigil.poll is None or vigil.poll.done():
            vigil.changed = loop.create_future()
            vigil.poll = loop.create_task(self._poll(vigil))
        return vigil

    async def _poll(self, vigil: "_Vigil") -> None:
        # Looks before it sleeps: a commit since the last look wakes at once, so none is missed in between.
        await asyncio.sleep(0)
        pause = RECHECK_SECONDS if vigil.notices.heard else POLL_SECONDS
        while vigil.waiting:
            if self._look(vigil):
                vigil.changed.set_result(None)
                return
            await vigil.notices.next(pause)

    def _look(self, vigil: "_Vigil") -> bool:
        with self._guard:
            if self._closed:
                return True
            try:
                if self._connection is None:
                    self._connection = self._opener()
                version = self._connection.data_version()
            except (apsw.Error, StoreUnavailable):
                return False  # a hint lost; whoever waits polls anyway
            changed = version != vigil.seen
            vigil.seen = version
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
