"""Wake-up across processes: a number in the database file's shared memory changes with every commit.

Reading it takes microseconds and no lock. One task per event loop reads it for as long as somebody waits, and tells
them all: when the kernel gives notice of a commit, and every few milliseconds where it does not.
"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

from windlass.errors import WindlassError
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.forks import stay_out_of_forks
from windlass.store.sqlite.lane import LONGEST_FORK
from windlass.store.sqlite.notices import Notices
from windlass.store.sqlite.trouble import DriverError

POLL_SECONDS = 0.004
RECHECK_SECONDS = 0.05
"""With notices, for commits of programs that are not ours."""
UNKNOWN, CLOSED = -1, -2
EPOCH = 1 << 40


class _Vigil:
    """Those who wait on one event loop, and the task that looks for them while there are any."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.seen = UNKNOWN
        self.waiting = 0
        self.changed = asyncio.Event()
        self.poll: asyncio.Task[None] | None = None

    def tell(self, version: int) -> None:
        """Whoever waits now is woken; whoever comes later waits for the next change."""
        self.seen = version
        self.changed.set()
        self.changed.clear()


class Watch:
    """Sees commits of every process, and tells whoever waits on any event loop."""

    def __init__(self, opener: Callable[[], Connection], touched: Path) -> None:
        """`touched` is a file that our own writers touch after each commit."""
        self._opener = opener
        self._touched = touched
        self._connection: Connection | None = None
        self._guard = threading.Lock()
        self._opened = 0
        """How often: the number is one of the connection, so another connection's would not compare."""
        self._forking = False
        self._vigils: WeakKeyDictionary[asyncio.AbstractEventLoop, _Vigil] = WeakKeyDictionary()
        self._closed = False
        stay_out_of_forks(self)

    def version(self) -> int:
        """The number that changes with every commit; UNKNOWN while the file cannot be read."""
        with self._guard:
            if self._closed:
                return CLOSED
            try:
                if self._connection is None:
                    self._connection = self._opener()
                    self._opened += 1
                return self._opened * EPOCH + self._connection.data_version()
            except (DriverError, WindlassError):
                return UNKNOWN  # a hint lost; whoever waits polls anyway

    async def wait(self, mark: int, seconds: float) -> bool:
        """Until the version is another than the mark, or until the time is over: whether it is."""
        if self.version() != mark:
            return True
        vigil = self._vigil()
        if vigil.seen != mark:
            vigil.tell(mark)
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
            vigil.poll = loop.create_task(self._poll(vigil, loop))
        return vigil

    async def _poll(self, vigil: "_Vigil", loop: asyncio.AbstractEventLoop) -> None:
        try:
            await asyncio.sleep(0)
            pause = RECHECK_SECONDS if vigil.notices.heard else POLL_SECONDS
            while vigil.waiting:
                if (version := self.version()) != vigil.seen:
                    vigil.tell(version)
                await vigil.notices.next(pause)
        finally:
            # A loop that has ended must not be kept by those who waited on it.
            self._vigils.pop(loop, None)

    def before_fork(self) -> None:
        """Let nothing be open."""
        self._forking = self._guard.acquire(timeout=LONGEST_FORK)
        if self._forking and self._connection is not None:
            self._connection.close()
            self._connection = None

    def after_fork(self) -> None:
        """Go on."""
        if self._forking:
            self._forking = False
            self._guard.release()

    def close(self) -> None:
        """Wake everybody for the last time."""
        with self._guard:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
