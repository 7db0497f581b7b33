"""Binds verbs, which take a database, to roles, which have access to one."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.signals.hints import Hints

P = ParamSpec("P")
T = TypeVar("T")


class Role:
    """Verbs that share an access and the hints."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints


Verb = Callable[Concatenate[Db, P], Awaitable[T]]
Bound = Callable[Concatenate[Role, P], Coroutine[Any, Any, T]]


def reading(verb: Verb[P, T]) -> Bound[P, T]:
    """A verb that only reads."""

    async def bound(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._access.read(lambda db: verb(db, *args, **kwargs))

    return bound


def once(verb: Verb[P, T]) -> Bound[P, T]:
    """A verb that is a single statement."""

    async def bound(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._access.once(lambda db: verb(db, *args, **kwargs))

    return bound


def writing(verb: Verb[P, T]) -> Bound[P, T]:
    """A verb that is a transaction."""

    async def bound(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._access.write(lambda db: verb(db, *args, **kwargs))

    return bound


def announcing(verb: Verb[P, T]) -> Bound[P, T]:
    """A transaction after which jobs may be pending."""

    async def bound(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer = await role._access.write(lambda db: verb(db, *args, **kwargs))
        role._hints.announce()
        return answer

    return bound
