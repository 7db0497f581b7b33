"""One piece of work for a lane, and the caller who waits for it: a task of an event loop, or a thread without one."""

import asyncio
import concurrent.futures
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from windlass.store.sqlite.connection import Connection

T = TypeVar("T")
Work = Callable[[Connection], T]


class Request(Generic[T]):
    """What is to be done, how far it is, and what came of it."""

    __slots__ = ("__weakref__", "error", "future", "loop", "result", "started", "withdrawn", "work")

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[T] | concurrent.futures.Future[T] | None = None
        self.started = self.withdrawn = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def outcome(self) -> T:
        """What came of it, for a caller who did it himself."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]

    @property
    def answered(self) -> bool:
        """Whether the caller has been told, or has gone."""
        return self.future is None or self.future.done()

    def wanted(self) -> bool:
        """Whether anybody still waits for it."""
        return not (self.withdrawn or (self.future is not None and self.future.cancelled()))

    def deliver(self) -> None:
        """Tell the caller, where he waits."""
        if self.future is None or self.future.done():
            return
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # a thread gave up at this very moment
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)  # type: ignore[arg-type]


def answer(group: Iterable[Request[Any]]) -> None:
    """Wake the callers: one wake-up per event loop, and each thread by itself."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = defaultdict(list)
    for request in group:
        if request.loop is None:
            request.deliver()
        else:
            by_loop[request.loop].append(request)
    for loop, requests in by_loop.items():
        # A loop that is closed has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver_all, requests)


def _deliver_all(requests: list[Request[Any]]) -> None:
    for request in requests:
        request.deliver()
