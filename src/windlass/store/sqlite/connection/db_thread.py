"""Threads in which statements run, so that no event loop waits for a disk.

A caller without an event loop blocks anyway. While the database thread is idle, such a caller runs the work in its
own thread, because two thread switches cost more than the statements. Otherwise its request queues like all others.
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
from windlass.native import lock, pool, simple_queue, start_thread
from windlass.store.drive import running_loop
from windlass.store.sqlite.connection.base import Connection, DriverError, to_store_error
from windlass.store.sqlite.connection.libraries import close_before_fork
from windlass.store.sqlite.connection.requests import Deadlines, Request, Work, answer

T = TypeVar("T")

MAX_IN_GROUP = 500
MAX_FORK_WAIT_SECONDS = 10.0
"""How long a fork waits for a transaction to end."""


class DbThread(ABC):
    """One connection, one queue of requests, and one thread that serves them in groups."""

    def __init__(self, name: str, path: Path, opener: Callable[[], Connection]) -> None:
        self._path = path
        self._opener = opener
        self._connection: Connection | None = None
        self._waiting: queue.SimpleQueue[Request[Any] | None] = simple_queue()
        self._guard = lock()
        self._connection_lock = lock()
        """Held by the thread that uses the connection."""
        self._caller_thread = 0
        """The id of the caller's thread that runs its own work now; 0: none."""
        self._deadlines = Deadlines(self._expire)
        self._closed = False
        self._forking = False
        self._join = start_thread(self._serve, f"windlass-{name}")
        close_before_fork(self)

    async def run(self, work: Work[T], deadline: float | None = None) -> T:
        """Run the work; when this returns, its writes are as durable as the store's address says.

        Work that has not begun at the deadline is withdrawn, and certainly did nothing. Without an event loop this
        blocks and never suspends, so the coroutine can be driven by hand.
        """
        loop = running_loop()
        if loop is None:
            return self._run_blocking(Request(work), deadline)
        request = Request(work, loop)
        future: asyncio.Future[T] = loop.create_future()
        request.future = future
        self._put(request)
        if deadline is not None:
            self._deadlines.watch(request, loop, deadline)
        return await future

    async def close(self) -> None:
        """Finish the waiting requests, then end the thread."""
        with self._guard:
            # Under the guard, so that no request is queued behind the end marker.
            self._closed = True
            self._waiting.put(None)
        threads = pool(1, "windlass-close")
        joined = asyncio.get_running_loop().run_in_executor(threads, self._join)
        threads.shutdown(wait=False)
        await joined

    def _run_blocking(self, request: Request[T], deadline: float | None) -> T:
        if self._caller_thread == threading.get_ident():
            raise StoreUnavailable("called during another call of this thread, as by a signal handler")
        if self._is_idle() and not self._connection_lock.locked() and self._run_in_caller(request):
            return request.outcome()
        future = request.future = concurrent.futures.Future()
        self._put(request)
        try:
            return future.result(deadline)
        except concurrent.futures.TimeoutError:
            if deadline is not None:
                self._expire(request, deadline)
            return future.result()

    def _run_in_caller(self, request: Request[Any]) -> bool:
        """Run the request in this thread if it need not wait; returns whether it ran."""
        try:
            with self._connection_lock:
                self._caller_thread = threading.get_ident()
                try:
                    return self._is_idle() and self._try_now(request)
                finally:
                    self._caller_thread = 0
        except BaseException:
            # An interrupt may have come at any line. The database thread, which gets none, resets the connection.
            with contextlib.suppress(StoreUnavailable):
                self._put(Request(_nothing))
            raise

    def before_fork(self) -> None:
        """Close the connection: a child that inherits it would write without holding our locks."""
        in_caller = self._caller_thread == threading.get_ident()
        if not in_caller and self._connection_lock.acquire(timeout=MAX_FORK_WAIT_SECONDS):
            self._forking = True
            self._disconnect()

    def after_fork(self) -> None:
        """Release the connection lock; the next request opens the file again."""
        if self._forking:
            self._forking = False
            self._connection_lock.release()

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
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # answered at this moment
                future.set_exception(StoreUnavailable(problem, maybe_done=started))

    def _start(self, request: Request[Any]) -> bool:
        """Mark a request as started if its caller still waits; from then on it cannot be withdrawn."""
        with self._guard:
            request.started = request.wanted()
            return request.started

    def _serve(self) -> None:
        try:
            while self._serve_group():
                pass
        finally:
            with self._connection_lock:
                self._disconnect()

    def _serve_group(self) -> bool:
        """Serve the waiting requests; returns False once closed. A function, so that its locals, which refer to
        requests and so to apps, do not outlive the group."""
        group, is_open = self._take()
        if group:
            self._run_group(group)
        return is_open

    def _run_group(self, group: list[Request[Any]]) -> None:
        try:
            with self._connection_lock:
                self._do(group)
        except BaseException as error:
            # Any error goes to the callers; the thread continues.
            for request in group:
                request.error = request.error or StoreUnavailable(f"{self._path}: {error!r}", maybe_done=True)
        answer(group)

    def _take(self) -> tuple[list[Request[Any]], bool]:
        group: list[Request[Any]] = []
        request = self._waiting.get()
        while request is not None:
            group.append(request)
            if len(group) == MAX_IN_GROUP:
                return group, True
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    @abstractmethod
    def _do(self, group: list[Request[Any]]) -> None:
        """Set the result or the error of each request that is still wanted."""

    @abstractmethod
    def _try_now(self, request: Request[Any]) -> bool:
        """Run the request if it need not wait; returns False if it was not run."""

    def _connected(self) -> Connection:
        """The connection, opened by the first request."""
        if self._connection is not None and self._connection.was_replaced():
            self._disconnect()
        if self._connection is None:
            self._connection = self._opener()
        return self._connection

    def _disconnect(self) -> None:
        """Close the connection; the next request opens another."""
        connection, self._connection = self._connection, None
        with contextlib.suppress(DriverError):
            if connection is not None:
                connection.close()


class ReadThread(DbThread):
    """The thread for reads, each in a snapshot of its own."""

    def __init__(self, path: Path, opener: Callable[[], Connection]) -> None:
        super().__init__("reader", path, opener)

    def _do(self, group: list[Request[Any]]) -> None:
        for request in filter(self._start, group):
            try:
                request.result = self._read(self._connected(), request.work)
            except DriverError as error:
                self._disconnect()
                request.error = to_store_error(error, self._path)
            except Exception as error:
                request.error = error

    def _try_now(self, request: Request[Any]) -> bool:
        self._do([request])
        return True

    def _read(self, connection: Connection, work: Work[T]) -> T:
        connection.reset()
        connection.run("BEGIN")
        try:
            return work(connection)
        finally:
            connection.run("COMMIT")


def _nothing(connection: Connection) -> None:
    """Empty work: its transaction resets the connection."""
