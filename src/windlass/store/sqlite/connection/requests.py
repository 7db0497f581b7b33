"""Requests to a database thread: the work, the caller that waits for it, and its deadline.

A caller is a task of an event loop, or a thread without one. All requests of an event loop with the same timeout
share one timer: nearly all are answered long before, and one timer per request would cost more than the queue.
"""

import asyncio
import concurrent.futures
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from windlass.store.sqlite.connection.base import Connection

T = TypeVar("T")
Work = Callable[[Connection], T]


class Request(Generic[T]):
    """A piece of work and its result."""

    __slots__ = ("__weakref__", "error", "future", "loop", "result", "started", "withdrawn", "work")

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[T] | concurrent.futures.Future[T] | None = None
        self.started = self.withdrawn = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def outcome(self) -> T:
        """The result, for a caller that ran the work in its own thread."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]

    @property
    def answered(self) -> bool:
        """Whether the caller has its answer or was cancelled."""
        return self.future is None or self.future.done()

    def wanted(self) -> bool:
        """Whether the caller still waits."""
        return not (self.withdrawn or (self.future is not None and self.future.cancelled()))

    def deliver(self) -> None:
        """Answer the caller, in its own thread or loop."""
        if self.future is None or self.future.done():
            return
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # the caller gave up at this moment
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)  # type: ignore[arg-type]


def answer(group: Iterable[Request[Any]]) -> None:
    """Deliver the results: one wake-up per event loop, and one per thread without a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = defaultdict(list)
    for request in group:
        if request.loop is None:
            request.deliver()
        else:
            by_loop[request.loop].append(request)
    for loop, requests in by_loop.items():
        # A closed loop has no waiting callers.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver_all, requests)


def _deliver_all(requests: list[Request[Any]]) -> None:
    for request in requests:
        request.deliver()


Expire = Callable[[Request[Any], float], None]


class _Deadline:
    """The requests of one loop with the same timeout, in order of their deadlines.

    They are weak references, so that no request keeps a loop alive that has ended.
    """

    def __init__(self, seconds: float, expire: Expire) -> None:
        self._seconds = seconds
        self._expire = expire
        self._due: deque[tuple[float, ref[Request[Any]]]] = deque()
        self._armed = False

    def add(self, request: Request[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._drop(0.0)
        self._due.append((loop.time() + self._seconds, ref(request)))
        self._arm(loop)

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._due and not self._armed:
            self._armed = True
            loop.call_at(self._due[0][0], self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._armed = False
        self._drop(loop.time())
        self._arm(loop)

    def _drop(self, now: float) -> None:
        """Drop answered requests and expire late ones."""
        due = self._due
        while due:
            end, reference = due[0]
            request = reference()
            unanswered = request is not None and not request.answered
            if unanswered and end > now:
                return
            due.popleft()
            if unanswered and request is not None:
                self._expire(request, self._seconds)


class Deadlines:
    """The deadlines of any number of event loops; each loop watches its own."""

    def __init__(self, expire: Expire) -> None:
        self._expire = expire
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _Deadline]] = WeakKeyDictionary()

    def watch(self, request: Request[Any], loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Call `expire` if the request has no answer in time."""
        deadlines = self._by_loop.get(loop)
        if deadlines is None:
            deadlines = self._by_loop[loop] = {}
        deadline = deadlines.get(seconds)
        if deadline is None:
            deadline = deadlines[seconds] = _Deadline(seconds, self._expire)
        deadline.add(request, loop)
