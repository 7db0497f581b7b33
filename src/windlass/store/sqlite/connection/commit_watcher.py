"""Wake-up across processes: `PRAGMA data_version` changes with every commit, and reading it takes no lock.

While any caller waits, one task per event loop reads it: after each inotify event on the turn file, which Windlass
reads after each commit, and every 50 ms; without inotify, every 4 ms.
"""

import asyncio
import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

from windlass.errors import WindlassError
from windlass.native import lock
from windlass.store.sqlite.connection.base import Connection, DriverError
from windlass.store.sqlite.connection.db_thread import MAX_FORK_WAIT_SECONDS
from windlass.store.sqlite.connection.libraries import close_before_fork

POLL_SECONDS = 0.004
RECHECK_SECONDS = 0.05
"""With inotify too, because other programs commit without reading the turn file."""
UNKNOWN, CLOSED = -1, -2
VERSIONS_PER_CONNECTION = 1 << 40
_IN_ACCESS = 0x1
_MAX_READ_BYTES = 64 * 1024


class _Inotify:
    """Read events of one file, for one event loop; kept with the loop, because closing one takes 12 ms."""

    def __init__(self, file: Path) -> None:
        self._descriptor = _watch(file)
        self._identity = None if self._descriptor is None else _identity(self._descriptor)

    @property
    def works(self) -> bool:
        """False too if a handler has closed all descriptors of this process: the number may be another file's now."""
        return self._descriptor is not None and _identity(self._descriptor) == self._identity

    async def next(self, seconds: float) -> None:
        """Wait at most this long for an event, or for none if one came since the last call."""
        if self._descriptor is None or not self.works:
            await asyncio.sleep(seconds)
            return
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._descriptor, event.set)
        except (OSError, RuntimeError):
            self._descriptor = None
            return
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._descriptor)
            if self.works:
                with contextlib.suppress(OSError):
                    os.read(self._descriptor, _MAX_READ_BYTES)

    def __del__(self) -> None:
        if self._descriptor is not None and self.works:
            os.close(self._descriptor)


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _watch(file: Path) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None  # this user has too many inotify instances
    if libc.inotify_add_watch(descriptor, os.fsencode(file), ctypes.c_uint32(_IN_ACCESS)) < 0:
        os.close(descriptor)
        return None
    return descriptor


class _LoopWatch:
    """The callers that wait on one event loop, and the task that polls for them."""

    def __init__(self, events: _Inotify) -> None:
        self.events = events
        self.seen = UNKNOWN
        self.waiting = 0
        self.changed = asyncio.Event()
        self.poll: asyncio.Task[None] | None = None

    def notify(self, version: int) -> None:
        """Wake the current callers; later ones wait for the next change."""
        self.seen = version
        self.changed.set()
        self.changed.clear()


class CommitWatcher:
    """Sees commits of every process and wakes callers on any event loop."""

    def __init__(self, opener: Callable[[], Connection], touched: Path) -> None:
        """`touched` is a file that Windlass's writers read after each commit."""
        self._opener = opener
        self._touched = touched
        self._connection: Connection | None = None
        self._guard = lock()
        self._opened = 0
        """How many connections were opened; the data versions of two connections are not comparable."""
        self._forking = False
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopWatch] = WeakKeyDictionary()
        self._events: WeakKeyDictionary[asyncio.AbstractEventLoop, _Inotify] = WeakKeyDictionary()
        self._closed = False
        close_before_fork(self)

    def version(self) -> int:
        """A number that changes with every commit; UNKNOWN while the file cannot be read."""
        with self._guard:
            if self._closed:
                return CLOSED
            try:
                if self._connection is not None and self._connection.was_replaced():
                    self._connection.close()
                    self._connection = None
                if self._connection is None:
                    self._connection = self._opener()
                    self._opened += 1
                return self._opened * VERSIONS_PER_CONNECTION + self._connection.data_version()
            except (DriverError, WindlassError):
                return UNKNOWN  # a lost hint: callers poll anyway

    async def wait(self, cursor: int, seconds: float) -> bool:
        """Wait at most this long for the version to differ from the cursor; returns whether it differs."""
        if self.version() != cursor:
            return True
        watch = self._loop_watch()
        if watch.seen != cursor:
            watch.notify(cursor)
        watch.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                while watch.seen == cursor:
                    await watch.changed.wait()
                return True
        except TimeoutError:
            return False
        finally:
            watch.waiting -= 1

    def _loop_watch(self) -> _LoopWatch:
        loop = asyncio.get_running_loop()
        watch = self._loops.get(loop)
        if watch is None:
            watch = self._loops[loop] = _LoopWatch(self._events_for(loop))
            watch.poll = loop.create_task(self._poll(watch, loop))
        return watch

    def _events_for(self, loop: asyncio.AbstractEventLoop) -> _Inotify:
        events = self._events.get(loop)
        if events is None or not events.works:
            events = self._events[loop] = _Inotify(self._touched)
        return events

    async def _poll(self, watch: _LoopWatch, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await asyncio.sleep(0)
            pause = RECHECK_SECONDS if watch.events.works else POLL_SECONDS
            while watch.waiting:
                if (version := self.version()) != watch.seen:
                    watch.notify(version)
                await watch.events.next(pause)
        finally:
            # Do not keep a loop that has ended alive.
            self._loops.pop(loop, None)

    def before_fork(self) -> None:
        """Close the connection."""
        self._forking = self._guard.acquire(timeout=MAX_FORK_WAIT_SECONDS)
        if self._forking and self._connection is not None:
            self._connection.close()
            self._connection = None

    def after_fork(self) -> None:
        """Release the guard; the next read opens the file again."""
        if self._forking:
            self._forking = False
            self._guard.release()

    def close(self) -> None:
        """Close the connection; callers that wait see one last change of the version."""
        with self._guard:
            self._closed = True
            self._events.clear()
            if self._connection is not None:
                self._connection.close()
