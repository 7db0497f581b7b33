"""A decorator around the contract, for metrics, the history that tests check, and failpoints."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Self

from windlass.store.contract import Store

ROLES = ("jobs", "operator", "queues", "schedules", "leases", "workers", "leader", "signals", "stats", "documents")
Call = Callable[..., Awaitable[Any]]


class WrappedRole:
    """A role whose verbs are wrapped when they are first used; everything else is the role's own."""

    def __init__(self, role: Any, wrap: Callable[[str, Call], Call]) -> None:
        self._role = role
        self._wrap = wrap

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._role, name)
        if not inspect.iscoroutinefunction(call):
            return call
        wrapped = self.__dict__[name] = self._wrap(name, call)  # found without __getattr__ from now on
        return wrapped


class WrappedStore:
    """A store whose roles are wrapped; `wrap` gets the role, the verb and its call."""

    def __init__(self, store: Store, wrap: Callable[[str, str, Call], Call]) -> None:
        self._store = store
        self._wrap = wrap
        for name in ROLES:
            setattr(self, name, WrappedRole(getattr(store, name), partial(wrap, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def with_timeout(self, seconds: float) -> Self:
        """The same, with another time limit."""
        return type(self)(self._store.with_timeout(seconds), self._wrap)
