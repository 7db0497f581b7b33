"""Verbs as methods of a role, and how certain an error of a verb is.

An error says that nothing was done only if no step of the call has done anything.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from windlass.errors import InvalidInput, KeyConflict, QueueClosed, StoreUnavailable
from windlass.store.redis.connection.access import Access

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Verb = Callable[Concatenate[Access, P], Awaitable[T]]


class _Role(Protocol):
    _access: Access


class Method(Protocol[P, T_co]):
    """What `verb` returns: a function that is a method of its role, with the verb's own parameters."""

    def __get__(self, role: Any, owner: type | None = None) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


def verb(work: Verb[P, T], *, steps: bool = False, background: bool = False) -> Method[P, T]:
    """A method that calls `work` with the role's access.

    `steps`: it makes several calls, and an error after the first change leaves the outcome unknown.
    `background`: in a cluster, an unreachable server is not waited for.
    """

    async def bound(role: _Role, *args: P.args, **kwargs: P.kwargs) -> T:
        access = role._access.background() if background else role._access
        if steps:
            return await with_outcome(access, work, *args, **kwargs)
        return await work(access, *args, **kwargs)

    return cast(Method[P, T], bound)


async def with_outcome(access: Access, work: Verb[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a verb of several steps: an error after one of them changed anything says that it may be done."""
    own = Access(access.server, access.seconds, patient=access.patient)
    try:
        return await work(own, *args, **kwargs)
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or own.changed
        raise


@contextlib.contextmanager
def after_storing(queues: Collection[str]) -> Iterator[None]:
    """What fails in here fails after these queues have stored jobs of the same call; they may grow meanwhile.

    A refusal by another queue says that nothing was stored: it becomes an error that does not.
    """
    try:
        yield
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or bool(queues)
        raise
    except (KeyConflict, QueueClosed, InvalidInput) as error:
        if not queues:
            raise
        raise partly_stored(queues, error) from error


def partly_stored(queues: Collection[str], error: Exception) -> StoreUnavailable:
    """The error of a call over several queues of which these have stored their jobs, and another one refused."""
    said = str(error).removesuffix("; nothing was stored")
    names = ", ".join(map(repr, sorted(queues)))
    return StoreUnavailable(f"only a part is stored, in the queues {names}: {said}", maybe_done=True)
