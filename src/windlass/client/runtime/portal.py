"""The blocking API, made from the asynchronous one: every `averb` has a `verb`, and no verb is written twice."""

import asyncio
import atexit
import contextlib
import inspect
import os
import threading
import weakref
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from windlass.client.runtime.loop_call import NotBegun, run_elsewhere, run_on
from windlass.client.runtime.loops import ending_loops, held_loops, loop_factory, portal_loops
from windlass.core.jobs.job import NewJob
from windlass.errors import ConfigError, InvalidOption, UseAsync
from windlass.native import Join, is_gevent, lock, pool, start_thread
from windlass.store.drive import drive, running_loop

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
EXECUTOR_THREADS = 8
"""Threads for the blocking calls of a loop that greenlets use."""
MAX_ROUNDS = 10
"""Rounds of cancelling, since ending tasks may start others."""
MAX_HOLD_SECONDS = 1.0
"""How long the end of the process waits for a loop that is busy."""


class Portal:
    """An event loop in a thread of its own, for callers without one; started when needed."""

    def __init__(
        self,
        works_without_loop: Callable[[], bool] = lambda: False,
        loop: asyncio.AbstractEventLoop | None = None,
        begins_without_loop: Callable[[], bool] = lambda: False,
    ) -> None:
        """`loop` is a running loop, in a thread that calls no blocking verb; its owner stops it."""
        self.pid = os.getpid()
        self._works_without_loop = works_without_loop
        """Whether the store's verbs block instead of suspending where there is no loop: then none is needed."""
        self._begins_without_loop = begins_without_loop
        """Whether an enqueue may begin in the caller's thread, where it usually also ends."""
        self._guard = threading.Lock()
        self._loop = loop
        self._join: Join | None = None

    def run(
        self, work: Coroutine[Any, Any, R], *, waits: bool = False, here: bool = False, begins_here: bool = False
    ) -> R:
        """Run a coroutine and wait for it; one that `waits` for more than the store always needs a loop.

        A coroutine that must run `here`, on a connection of this thread, never suspends. One that `begins_here`
        continues on the loop where it suspends. A greenlet always uses the loop: a blocking store would stop all
        other greenlets.
        """
        try:
            greenlet = is_gevent()
            here = here or (not waits and not greenlet and self._works_without_loop())
            loop = None if here else self._running()
        except ConfigError:
            work.close()  # close the coroutine, which will not run
            raise
        if loop is None:
            return drive(work)
        if begins_here and not greenlet and self._begins_without_loop():
            try:
                work.send(None)
            except StopIteration as end:
                result: R = end.value
                return result
        return run_elsewhere(loop, work) if greenlet else run_on(loop, work)

    def close(self) -> None:
        """End the thread."""
        if self._loop is not None and self._join is not None and self._loop not in held_loops:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                runner = asyncio.Runner(loop_factory=loop_factory())
                self._loop = runner.get_loop()
                portal_loops[self._loop] = self.pid
                if is_gevent():
                    self._loop.set_default_executor(pool(EXECUTOR_THREADS, "windlass-portal"))
                self._join = start_thread(partial(_serve, runner), "windlass-portal")
                # For a portal that is dropped without `close()`; at the end of the process see `_hold_loops`.
                weakref.finalize(self, _stop, self._loop, self.pid).atexit = False
            return self._loop


def _serve(runner: asyncio.Runner) -> None:
    """Run the loop until it is stopped, and clean up: tasks first, then connections."""
    with runner:
        try:
            runner.get_loop().run_forever()
        finally:
            ending_loops.add(runner.get_loop())
        _cancel_tasks(runner.get_loop())


def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks, and those that they start while ending: uvloop must not close over an open connection."""
    for _ in range(MAX_ROUNDS):
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks))


def _stop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Stop the loop without a lock, since the garbage collector may call this."""
    if pid == os.getpid():
        with contextlib.suppress(RuntimeError):  # it was closed
            loop.call_soon_threadsafe(loop.stop)


@atexit.register
def _hold_loops() -> None:
    """Stop each loop of this process where it is.

    One that wakes up after the interpreter is gone crashes the process: uvloop asks for the interpreter's lock.
    """
    for loop in [loop for loop, pid in list(portal_loops.items()) if pid == os.getpid()]:
        held = lock()
        held.acquire()
        with contextlib.suppress(RuntimeError):  # it was closed
            loop.call_soon_threadsafe(_hold, held)
            held_loops.add(loop)
            held.acquire(timeout=MAX_HOLD_SECONDS)


def _hold(held: threading.Lock) -> None:
    """On the loop: never return."""
    held.release()
    for_ever = lock()
    for_ever.acquire()
    for_ever.acquire()


class Portaled(Protocol):
    """Has a portal."""

    def _portal(self) -> Portal: ...


S = TypeVar("S", bound=Portaled)


class blocking(Generic[S, P, R]):
    """The blocking form of an asynchronous method, with its signature."""

    def __init__(
        self,
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
        *,
        waits: bool = False,
        begins_here: bool = False,
        here: Callable[..., bool] = lambda *_, **__: False,
        iterable: str | None = None,
    ) -> None:
        """`here` tells whether a call takes part in the caller's transaction: see `Portal.run`.

        `iterable` names the first parameter if it is one: the caller's generator runs in the caller's thread.
        """
        self._method = method
        self.__doc__ = method.__doc__
        verb = method.__name__
        name = verb.removeprefix("a")

        def call(bound: S, /, *args: Any, **kwargs: Any) -> R:
            refuse_on_loop(name)
            if iterable in kwargs:
                kwargs[iterable] = as_list(kwargs[iterable], iterable)
            elif iterable is not None and args:
                args = (as_list(args[0], iterable), *args[1:])
            portal, inside = bound._portal(), here(bound, *args, **kwargs)
            # By name: a subclass that overrides `averb` has its own `verb`.
            make = getattr(type(bound), verb, method)
            done: R
            try:
                done = portal.run(make(bound, *args, **kwargs), waits=waits, here=inside, begins_here=begins_here)
            except NotBegun:
                # Another thread closed the app at this moment: the next call opens it again.
                done = bound._portal().run(
                    make(bound, *args, **kwargs), waits=waits, here=inside, begins_here=begins_here
                )
            return done

        call.__name__, call.__doc__, call.__module__ = name, method.__doc__, method.__module__
        call.__qualname__ = method.__qualname__.removesuffix(verb) + name
        # For help(), which would otherwise show `*args, **kwargs`.
        vars(call)["__signature__"] = inspect.signature(method)
        self._call = call

    @overload
    def __get__(self, instance: None, owner: type[S]) -> "blocking[S, P, R]": ...
    @overload
    def __get__(self, instance: S, owner: type[S]) -> Callable[P, R]: ...
    def __get__(self, instance: S | None, owner: type[S]) -> Any:
        return self if instance is None else MethodType(self._call, instance)


def refuse_on_loop(verb: str, instead: str | None = None) -> None:
    """A blocking call would freeze all other tasks of a running loop."""
    if is_on_loop():
        raise UseAsync(verb, instead)


def is_on_loop() -> bool:
    """Whether an event loop runs in this thread."""
    return running_loop() is not None


def as_list(given: Iterable[T], field: str) -> list[T]:
    """All items; an error of the iterator itself passes unchanged."""
    return list(as_iterator(given, field))


def as_iterator(given: Iterable[T], field: str) -> Iterator[T]:
    """Its items, one after the other."""
    try:
        return iter(given)
    except TypeError:
        raise InvalidOption(field, _problem(given)) from None


def _problem(given: Any) -> str:
    if isinstance(given, NewJob):
        return "is one job; give a list of jobs: [job]"
    if isinstance(given, AsyncIterable):
        return "is an async iterable; collect it first: [job async for job in ...]"
    return f"must be an iterable of jobs, not {type(given).__name__}"
