"""The blocking face, made from the asynchronous one: every `averb` has a `verb`, and no verb is written twice."""

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from windlass.client.loops import loop_factory
from windlass.errors import UseAsync
from windlass.store.drive import drive

P = ParamSpec("P")
R = TypeVar("R")


class Portal:
    """For callers that have no event loop: one in a thread of its own, started when something needs it."""

    def __init__(
        self, loopless: Callable[[], bool] = lambda: False, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """`loop` is one that runs already, in a thread that calls no blocking verb, and that somebody else ends."""
        self.pid = os.getpid()
        self._loopless = loopless
        """Whether the store's verbs block instead of suspending where there is no loop: then nothing needs one."""
        self._guard = threading.Lock()
        self._loop = loop
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, R], *, waits: bool = False, here: bool = False) -> R:
        """Run the work and wait for it; work that `waits` for more than the store needs a loop in any case.

        Work that must be done `here`, on a connection of this very thread, never suspends.
        """
        if here or (not waits and self._loopless()):
            return drive(work)
        return asyncio.run_coroutine_threadsafe(work, self._running()).result()

    def close(self) -> None:
        """End the thread."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                runner = asyncio.Runner(loop_factory=loop_factory())
                self._loop = runner.get_loop()
                self._thread = threading.Thread(target=_serve, args=(runner,), name="windlass-portal", daemon=True)
                self._thread.start()
            return self._loop


def _serve(runner: asyncio.Runner) -> None:
    """Run the loop until it is stopped, and end what is left on it: tasks first, then connections."""
    with runner:
        runner.get_loop().run_forever()


class Portaled(Protocol):
    """Whatever can reach a portal."""

    def _portal(self) -> Portal: ...


S = TypeVar("S", bound=Portaled)


class blocking(Generic[S, P, R]):
    """The blocking form of an asynchronous method, with its signature."""

    def __init__(
        self,
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
        *,
        waits: bool = False,
        here: Callable[..., bool] = lambda *_, **__: False,
    ) -> None:
        """`here` tells of a call whether it takes part in a transaction of the caller's: see `Portal.run`."""
        self._method = method
        self._waits = waits
        self._here = here
        self.__doc__ = method.__doc__
        whole = inspect.signature(method)
        # For help(), which would show any arguments otherwise.
        self._signature = whole.replace(parameters=[*whole.parameters.values()][1:])
        self._name = method.__name__.removeprefix("a")

    @overload
    def __get__(self, instance: None, owner: type[S]) -> "blocking[S, P, R]": ...
    @overload
    def __get__(self, instance: S, owner: type[S]) -> Callable[P, R]: ...
    def __get__(self, instance: S | None, owner: type[S]) -> Any:
        if instance is None:
            return self
        bound, method, name, waits, here = instance, self._method, self._name, self._waits, self._here

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_on_loop(name)
            inside = here(bound, *args, **kwargs)
            return bound._portal().run(method(bound, *args, **kwargs), waits=waits, here=inside)

        call.__name__, call.__doc__ = name, self.__doc__
        vars(call)["__signature__"] = self._signature
        return call


def refuse_on_loop(verb: str) -> None:
    """A blocking call would freeze every other task of a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UseAsync(verb)
