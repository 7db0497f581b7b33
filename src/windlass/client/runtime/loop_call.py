"""Calls of a coroutine on the event loop of another thread: a caller gets an error if that loop is closed."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from windlass.client.runtime.loops import held_loops, is_ending
from windlass.errors import StoreUnavailable

R = TypeVar("R")
LOOK_SECONDS = 1.0
"""How often a waiting caller checks whether the loop was closed."""


class NotBegun(StoreUnavailable):
    """The loop ended before the call began: it had no effect, and may be made on another loop."""

    def __init__(self) -> None:
        super().__init__("the app was closed before the call began")


class _LoopCall(Generic[R]):
    """One call; `wake` is called on the loop when it has ended."""

    __slots__ = ("_failure", "_loop", "_task", "_wake", "_work")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R], wake: Callable[[], object]
    ) -> None:
        self._loop, self._work, self._wake = loop, work, wake
        self._task: asyncio.Task[R] | None = None
        self._failure: BaseException | None = None

    def start(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._begin)
        except RuntimeError:
            self._work.close()  # the loop is closed
            raise NotBegun from None

    def _begin(self) -> None:
        try:
            if is_ending(self._loop):
                raise NotBegun  # a connection that is opened now would be left over
            self._task = self._loop.create_task(self._work)
        except BaseException as error:
            self._work.close()
            self._failure = error
            self._wake()
            return
        self._task.add_done_callback(lambda _: self._wake())

    def cancel(self) -> None:
        """Cancel it; from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())

    def is_abandoned(self) -> bool:
        """Whether the loop was closed or stopped: it runs no more callbacks."""
        return self._loop.is_closed() or self._loop in held_loops

    def outcome(self) -> R:
        """The result, or the error, of the coroutine."""
        task, failure, self._task, self._failure = self._task, self._failure, None, None
        try:
            if failure is not None:
                raise failure
            if task is None:
                self._work.close()
                raise NotBegun
            if not task.done() or task.cancelled():
                raise StoreUnavailable("the app was closed during the call", maybe_done=True)
            return task.result()
        finally:
            del task, failure  # break the cycle: the error refers to this frame


def run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R]) -> R:
    """Run the coroutine on another thread's loop and wait. A bare lock costs half of a future that threads share."""
    ended = threading.Lock()
    ended.acquire()
    call = _LoopCall(loop, work, ended.release)
    call.start()
    abandoned = False
    while not ended.acquire(timeout=LOOK_SECONDS) and not abandoned:
        abandoned = call.is_abandoned()  # Check once more: it may have ended before the wait began.
    return call.outcome()


def run_elsewhere(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R]) -> R:
    """The same for a greenlet: other greenlets run meanwhile. Killing the greenlet cancels the call."""
    gevent = sys.modules["gevent"]
    hub = gevent.get_hub()
    ended = sys.modules["gevent.hub"].Waiter(hub)
    call = _LoopCall(loop, work, lambda: hub.loop.run_callback_threadsafe(ended.switch, True))
    # Never sent: without a watcher the hub would assume that the wait can never end.
    watcher = hub.loop.async_()
    watcher.start(lambda: None)
    try:
        call.start()
        abandoned = False
        while not gevent.with_timeout(LOOK_SECONDS, ended.get, timeout_value=False) and not abandoned:
            abandoned = call.is_abandoned()
    except BaseException:
        call.cancel()
        raise
    finally:
        watcher.stop()
        watcher.close()
    return call.outcome()
