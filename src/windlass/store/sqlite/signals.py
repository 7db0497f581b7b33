"""Wake-up across processes: a number in the database file's shared memory changes with every commit.

Reading it takes microseconds and no lock. One task per event loop reads it for as long as somebody waits, and tells
them all: when the kernel gives notice of a commit, and every few milliseconds where it does not.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from windlass.errors import WindlassError
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.notices import Notices
from windlass.store.sqlite.trouble import DriverError

POLL_SECONDS = 0.004
RECHECK_SECONDS = 0.05
"""With notices, for commits of programs that are not ours."""
UNKNOWN, CLOSED = -1, -2


class _Vigil:
    """Those who wait on one event loop, and the task that looks for them while there are any."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.seen = UNKNOWN
        self.waiting = 0
        self.changed = asyncio.Event()
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

    def version(self) -> int:
        """The number that changes with every commit; UNKNOWN while the file cannot be read."""
        with self._guard:
            if self._closed:
                return CLOSED
            try:
                if self._connection is None:
                    self._connection = self._opener()
                return self._connection.data_version()
            except (DriverError, WindlassError):
                return UNKNOWN  # a hint lost; whoever waits polls anyway

    async def wait(self, mark: int, seconds: float) -> bool:
        """Until the version is another than the mark, or until the time is over: whether it is."""
        if self.version() != mark:
            return True
        vigil = self._vigil()
        vigil.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                while vigil.seen == mark:
                    await vigil.changed.wait()
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
            vigil.seen = self.version()
            vigil.poll = loop.create_task(self._poll(vigil))
        return vigil

    async def _poll(self, vigil: "_Vigil") -> None:
        await asyncio.sleep(0)
        pause = RECHECK_SECONDS if vigil.notices.heard else POLL_SECONDS
        while vigil.waiting:
            version = self.version()
            if version != vigil.seen:
                vigil.seen = version
                # Whoever waits now is woken; whoever comes later waits for the next change.
                vigil.changed.set()
                vigil.changed.clear()
            await vigil.notices.next(pause)

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
