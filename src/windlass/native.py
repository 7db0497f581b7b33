"""Threads, locks and queues of the operating system, also in a process whose `threading` gevent has patched.

There `threading.Thread` starts a greenlet. One that an event loop waits for never runs: the loop blocks the thread
that both share.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from windlass.errors import ConfigError

P = ParamSpec("P")
T = TypeVar("T")

Join = Callable[[], object]
"""Waits until a thread has ended."""


def is_gevent() -> bool:
    """Whether gevent has replaced the threads of this process. Raises ConfigError if eventlet has."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if eventlet is not None and any(map(eventlet.is_monkey_patched, ("thread", "select"))):
        raise ConfigError(
            "eventlet has patched this process. Windlass needs the operating system's threads and polls, and would "
            "hang. Leave out eventlet.monkey_patch() here, or use gevent or threads instead of eventlet"
        )
    return gevent is not None and bool(gevent.is_module_patched("threading"))


def require_threads() -> None:
    """Raise ConfigError if this process, which is to run handlers or duties, has greenlets for threads."""
    if is_gevent():
        raise ConfigError(
            "gevent has patched the threads of this process. A worker runs handlers on an event loop and in threads, "
            "and would hang. Call monkey.patch_all() in what only the web server imports, not in what the worker does"
        )


def lock() -> threading.Lock:
    """As `threading.Lock()`."""
    made: threading.Lock = _original("_thread", "allocate_lock")()
    return made


def rlock() -> threading.RLock:
    """As `threading.RLock()`: greenlets of one thread count as one holder."""
    made: threading.RLock = _original("_thread", "RLock")()
    return made


def simple_queue() -> Any:
    """As `queue.SimpleQueue()`."""
    return _original("queue", "SimpleQueue")()


def poll() -> Any:
    """As `select.poll()`."""
    return _original("select", "poll")()


def start_thread(target: Callable[[], object], name: str) -> Join:
    """Start a thread that does not keep the process alive; returns its join."""
    if not is_gevent():
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread.join
    running = lock()
    running.acquire()
    _original("_thread", "start_new_thread")(_run_and_release, (target, running))
    return partial(_await_release, running)


def pool(size: int, name: str) -> ThreadPoolExecutor:
    """Threads for blocking calls."""
    return NativePool(size, name) if is_gevent() else ThreadPoolExecutor(size, name)


class NativePool(ThreadPoolExecutor):
    """Starts threads while calls wait; each ends when none does. A subclass, because event loops require one."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name)
        self._size, self._name = size, name
        self._guard = lock()
        self._threads_now = 0
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call it in a thread."""
        future: Future[T] = Future()
        future._condition = threading.Condition(lock())
        with self._guard:
            if self._threads_now < self._size:
                start_thread(self._serve, self._name)
                self._threads_now += 1
            self._calls.append((future, partial(fn, *args, **kwargs)))
        return future

    def _serve(self) -> None:
        while True:
            with self._guard:
                if not self._calls:
                    self._threads_now -= 1
                    return
                future, call = self._calls.popleft()
            if future.set_running_or_notify_cancel():
                _answer(future, call)


def _answer(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _run_and_release(target: Callable[[], object], running: threading.Lock) -> None:
    try:
        target()
    finally:
        running.release()


def _await_release(running: threading.Lock) -> None:
    with running:
        return


def _original(module: str, name: str) -> Any:
    """The standard library's own object, even if gevent has replaced it."""
    gevent = sys.modules.get("gevent.monkey")
    return getattr(import_module(module), name) if gevent is None else gevent.get_original(module, name)
