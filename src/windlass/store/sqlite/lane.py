"""Lanes: the threads in which statements run, so that no event loop ever waits for a disk.

The writer's lane is a group commit: whatever is waiting goes into one transaction, one savepoint each, and one
flush to disk makes all of it durable. The batch grows by itself as the load does; nothing ever waits to fill it.
"""

import asyncio
import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from windlass.errors import StoreUnavailable, WindlassError
from windlass.store.sqlite.connection import Connection, translate
from windlass.store.sqlite.hogs import Hogs

T = TypeVar("T")
Work = Callable[[Connection], T]

MOST_IN_GROUP = 500


class _Request(Generic[T]):
    """One piece of work and the caller who waits for it."""

    __slots__ = ("error", "future", "loop", "result", "started", "withdrawn", "work")

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.started = self.withdrawn = False
        self.result: T | None = None
        self.error: BaseException | None = None


class Lane(ABC):
    """One thread, one connection, one queue of requests; how a group of them is done is its own."""

    def __init__(self, name: str, path: Path, opener: Callable[[], Connection]) -> None:
        self._path = path
        self._opener = opener
        self._connection: Connection | None = None
        self._waiting: queue.SimpleQueue[_Request[Any] | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name=f"windlass-{name}", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T], deadline: float | None = None) -> T:
        """Do the work in the lane; when it returns, it is as durable as the store is.

        Work that has not begun at the deadline is withdrawn: then it is certain that nothing happened.
        """
        request = _Request(work, asyncio.get_running_loop())
        with self._guard:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            self._waiting.put(request)
        if deadline is None:
            return await request.future
        timer = request.loop.call_later(deadline, self._expire, request, deadline)
        try:
            return await request.future
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Finish what is waiting, then end the thread."""
        with self._guard:
            # Under the guard, so that no request can come to stand behind the end of the line.
            self._closed = True
            self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _expire(self, request: _Request[Any], deadline: float) -> None:
        with self._guard:
            request.withdrawn = True
            started = request.started
        if not request.future.done():
            problem = f"{self._path} did not answer within {deadline:g} s"
            request.future.set_exception(StoreUnavailable(problem, maybe_done=started))

    def _start(self, request: _Request[Any]) -> bool:
        """Whether the caller still wants it: from here on it can no longer be withdrawn."""
        with self._guard:
            request.started = not (request.withdrawn or request.future.cancelled())
            return request.started

    def _serve(self) -> None:
        try:
            open_lane = True
            while open_lane:
                group, open_lane = self._take()
                if group:
                    self._do(group)
                    _answer(group)
        finally:
            self._shut()

    def _take(self) -> tuple[list[_Request[Any]], bool]:
        group: list[_Request[Any]] = []
        request = self._waiting.get()
        while request is not None:
            group.append(request)
            if len(group) == MOST_IN_GROUP:
                return group, True
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    @abstractmethod
    def _do(self, group: list[_Request[Any]]) -> None:
        """Give every request of the group that is still wanted its result or its error."""

    def _connected(self) -> Connection:
        """The lane's own connection, opened by its first request."""
        if self._connection is not None and self._connection.has_moved():
            self._shut()
        if self._connection is None:
            self._connection = self._opener()
        return self._connection

    def _shut(self) -> None:
        """Let the connection go; the next request opens another."""
        connection, self._connection = self._connection, None
        with contextlib.suppress(apsw.Error):
            if connection is not None:
                connection.close()


class ReadLane(Lane):
    """Reads, each in a snapshot of its own."""

    def __init__(self, path: Path, opener: Callable[[], Connection]) -> None:
        super().__init__("reader", path, opener)

    def _do(self, group: list[_Request[Any]]) -> None:
        for request in filter(self._start, group):
            try:
                request.result = self._read(self._connected(), request.work)
            except apsw.Error as error:
                self._shut()
                request.error = translate(error, self._path)
            except Exception as error:
                request.error = error

    def _read(self, connection: Connection, work: Work[T]) -> T:
        connection.run("BEGIN")
        try:
            return work(connection)
        finally:
            connection.run("COMMIT")


class WriteLane(Lane):
    """Writes, grouped: one turn, one transaction, one flush for all that is waiting."""

    def __init__(
        self,
        path: Path,
        opener: Callable[[], Connection],
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._turn = turn
        self._hogs = Hogs()
        super().__init__("writer", path, opener)

    def _do(self, group: list[_Request[Any]]) -> None:
        self._hogs.let_pass()
        committing = False
        try:
            with self._turn(), self._hogs.noticed():
                connection = self._connected()
                connection.run("BEGIN IMMEDIATE")
                # Only now: whoever gave up while we waited for the turn is told that nothing was done.
                self._attempt_all(connection, filter(self._start, group))
                committing = True
                connection.run("COMMIT")
        except apsw.Error as error:
            self._abandon(group, translate(error, self._path, maybe_done=committing))
        except Exception as error:
            self._abandon(group, error)

    def _connected(self) -> Connection:
        # A reader just looks into the new file. Who writes is told once; who tries again means the new one.
        if self._connection is not None and self._connection.has_moved():
            self._shut()
            raise StoreUnavailable(f"{self._path} was deleted or replaced while it was open")
        return super()._connected()

    def _attempt_all(self, connection: Connection, group: Iterable[_Request[Any]]) -> None:
        for request in group:
            connection.run("SAVEPOINT request")
            try:
                request.result = request.work(connection)
            except Exception as error:
                # A full disk or a failed read ends the whole transaction by itself; then nobody's work stands.
                if not connection.in_transaction:
                    raise
                connection.run("ROLLBACK TO request")
                request.error = translate(error, self._path) if isinstance(error, apsw.Error) else error
            connection.run("RELEASE request")

    def _abandon(self, group: list[_Request[Any]], error: Exception) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.run("ROLLBACK")
        except apsw.Error:
            self._shut()
        for request in group:
            request.error = request.error if isinstance(request.error, WindlassError) else error


def _answer(group: list[_Request[Any]]) -> None:
    """Wake the callers, one wake-up per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Request[Any]]] = defaultdict(list)
    for request in group:
        by_loop[request.loop].append(request)
    for loop, requests in by_loop.items():
        # A loop that is closed has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver, requests)


def _deliver(requests: list[_Request[Any]]) -> None:
    for request in requests:
        if request.future.done():
            continue
        if request.error is not None:
            request.future.set_exception(request.error)
        else:
            request.future.set_result(request.result)
