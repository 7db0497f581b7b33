"""Lanes: the threads in which statements run, so that no event loop ever waits for a disk.

A caller without an event loop would wait anyway. While the lane is idle he does his work himself, in his own thread:
two changes of thread cost more than the statements do. Otherwise he stands in line with the rest.
"""

import asyncio
import concurrent.futures
import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.deadlines import Deadlines
from windlass.store.sqlite.forks import stay_out_of_forks
from windlass.store.sqlite.request import Request, Work, answer
from windlass.store.sqlite.trouble import DriverError, translate

T = TypeVar("T")

MOST_IN_GROUP = 500
LONGEST_FORK = 10.0
"""Seconds for which a fork waits for a transaction to end."""


class Lane(ABC):
    """One connection, one line of requests, one thread that serves it; how a group is done is the lane's own."""

    def __init__(self, name: str, path: Path, opener: Callable[[], Connection]) -> None:
        self._path = path
        self._opener = opener
        self._connection: Connection | None = None
        self._waiting: queue.SimpleQueue[Request[Any] | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._seat = threading.Lock()
        """Held by whoever uses the connection."""
        self._seated = 0
        """The caller's thread that has it, to do its own work."""
        self._deadlines = Deadlines(self._expire)
        self._closed = False
        self._forking = False
        self._thread = threading.Thread(target=self._serve, name=f"windlass-{name}", daemon=True)
        self._thread.start()
        stay_out_of_forks(self)

    async def run(self, work: Work[T], deadline: float | None = None) -> T:
        """Do the work in the lane; when it returns, it is as durable as the store is.

        Work that has not begun at the deadline is withdrawn: then it is certain that nothing happened. Without an
        event loop this never suspends: it blocks, and the coroutine may be driven by hand.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._run_blocking(Request(work), deadline)
        request = Request(work, loop)
        future: asyncio.Future[T] = loop.create_future()
        request.future = future
        self._put(request)
        if deadline is not None:
            self._deadlines.watch(request, loop, deadline)
        return await future

    async def close(self) -> None:
        """Finish what is waiting, then end the thread."""
        with self._guard:
            # Under the guard, so that no request can come to stand behind the end of the line.
            self._closed = True
            self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run_blocking(self, request: Request[T], deadline: float | None) -> T:
        if self._seated == threading.get_ident():
            raise StoreUnavailable("called by a signal handler, or the like, in the midst of another call")
        if self._is_idle() and not self._seat.locked() and self._sit_down(request):
            return request.outcome()
        future = request.future = concurrent.futures.Future()
        self._put(request)
        try:
            return future.result(deadline)
        except concurrent.futures.TimeoutError:
            if deadline is not None:
                self._expire(request, deadline)
            return future.result()

    def _sit_down(self, request: Request[Any]) -> bool:
        """Do it here and now, if nothing stands in the way."""
        try:
            with self._seat:
                self._seated = threading.get_ident()
                try:
                    return self._is_idle() and self._do_at_once(request)
                finally:
                    self._seated = 0
        except BaseException:
            # An interrupt may have come anywhere in there. The lane's own thread, which gets none, tidies up.
            with contextlib.suppress(StoreUnavailable):
                self._put(Request(_nothing))
            raise

    def before_fork(self) -> None:
        """Let nothing be open: a child that has copies of our connections believes that it holds our locks."""
        if self._seated != threading.get_ident() and self._seat.acquire(timeout=LONGEST_FORK):
            self._forking = True
            self._shut()

    def after_fork(self) -> None:
        """Go on; the next request opens the file again."""
        if self._forking:
            self._forking = False
            self._seat.release()

    def _is_idle(self) -> bool:
        return self._connection is not None and not self._closed and self._waiting.empty()

    def _put(self, request: Request[Any]) -> None:
        with self._guard:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            self._waiting.put(request)

    def _expire(self, request: Request[Any], deadline: float) -> None:
        with self._guard:
            request.withdrawn = True
            started = request.started
        future = request.future
        if future is not None and not future.done():
            problem = f"{self._path} did not answer within {deadline:g} s"
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # the lane was a moment faster
                future.set_exception(StoreUnavailable(problem, maybe_done=started))

    def _start(self, request: Request[Any]) -> bool:
        """Whether the caller still wants it: from here on it can no longer be withdrawn."""
        with self._guard:
            request.started = request.wanted()
            return request.started

    def _serve(self) -> None:
        try:
            open_lane = True
            while open_lane:
                group, open_lane = self._take()
                if group:
                    self._work_off(group)
        finally:
            with self._seat:
                self._shut()

    def _work_off(self, group: list[Request[Any]]) -> None:
        try:
            with self._seat:
                self._do(group)
        except BaseException as error:
            # Whatever it was, those who wait are told, and the lane goes on.
            for request in group:
                request.error = request.error or StoreUnavailable(f"{self._path}: {error!r}", maybe_done=True)
        answer(group)

    def _take(self) -> tuple[list[Request[Any]], bool]:
        group: list[Request[Any]] = []
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
    def _do(self, group: list[Request[Any]]) -> None:
        """Give every request of the group that is still wanted its result or its error."""

    @abstractmethod
    def _do_at_once(self, request: Request[Any]) -> bool:
        """Do it now if nothing stands in the way: False if it would have to wait, and nothing was done."""

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
        with contextlib.suppress(DriverError):
            if connection is not None:
                connection.close()


class ReadLane(Lane):
    """Reads, each in a snapshot of its own."""

    def __init__(self, path: Path, opener: Callable[[], Connection]) -> None:
        super().__init__("reader", path, opener)

    def _do(self, group: list[Request[Any]]) -> None:
        for request in filter(self._start, group):
            try:
                request.result = self._read(self._connected(), request.work)
            except DriverError as error:
                self._shut()
                request.error = translate(error, self._path)
            except Exception as error:
                request.error = error

    def _do_at_once(self, request: Request[Any]) -> bool:
        self._do([request])
        return True

    def _read(self, connection: Connection, work: Work[T]) -> T:
        connection.tidy()
        connection.run("BEGIN")
        try:
            return work(connection)
        finally:
            connection.run("COMMIT")


def _nothing(connection: Connection) -> None:
    """Work that only opens and ends a transaction."""
