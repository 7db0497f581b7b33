"""The blocking face, made from the asynchronous one: every `averb` has a `verb`, and no verb is written twice."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from windlass.errors import UseAsync

P = ParamSpec("P")
R = TypeVar("R")


class Portal:
    """One event loop in a thread of its own, for callers that have none."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="windlass-portal", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run the work there and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Portaled(Protocol):
    """Whatever can reach a portal."""

    def _portal(self) -> Portal: ...


S = TypeVar("S", bound=Portaled)


class blocking(Generic[S, P, R]):
    """The blocking form of an asynchronous method, with its signature."""

    def __init__(self, method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__
        self._name = method.__name__.removeprefix("a")

    @overload
    def __get__(self, instance: None, owner: type[S]) -> "blocking[S, P, R]": ...
    @overload
    def __get__(self, instance: S, owner: type[S]) -> Callable[P, R]: ...
    def __get__(self, instance: S | None, owner: type[S]) -> Any:
        if instance is None:
            return self
        bound, method, name = instance, self._method, self._name

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_on_loop(name)
            return bound._portal().run(method(bound, *args, **kwargs))

        call.__name__, call.__doc__ = name, self.__doc__
        return call


def refuse_on_loop(verb: str) -> None:
    """A blocking call would freeze every other task of a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UseAsync(verb)
