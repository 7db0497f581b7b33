"""The session of the verbs that both SQL stores share.

The verbs are coroutines: PostgreSQL awaits its server, SQLite drives them on a database thread, where they never
suspend.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from windlass.core.moments import Micros

P = ParamSpec("P")
T = TypeVar("T")
Values = Mapping[str, Any]
NONE: Values = {}


class Session(Protocol):
    """A database, in a snapshot or a transaction. In statements, `:now` is the time by the store's clock."""

    dead_history: str
    """The table with the dead jobs."""
    is_failed: str
    """The condition for failed jobs, spelled as in the index on them."""

    @property
    def buckets(self) -> int:
        """The number of buckets over which jobs are spread."""

    async def now(self) -> Micros:
        """The time by the store's clock."""

    async def rows(self, name: str, values: Values = NONE) -> list[Any]:
        """The rows of a named statement."""

    async def run(self, name: str, values: Values = NONE) -> int:
        """Execute a named statement; returns how many rows it changed."""

    async def select(self, text: str, values: Values = NONE) -> list[Any]:
        """The rows of a statement that is built from constants, as PostgreSQL spells it."""

    def by_id(self, select: str, order: str) -> str:
        """A select of `:limit` rows of a table `found` in the order of `id`, for one bucket or for several."""

    def wall_time(self, expires_at: Micros) -> Micros:
        """The end of a lease by the wall clock."""


class Sessions(Protocol):
    """Gives the verbs of a role their sessions."""

    async def read(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        """Run in a snapshot, or statement by statement."""

    async def write(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        """Run in a transaction."""


class SharedRole:
    """A part of the store contract whose verbs are functions of a session."""

    _sessions: Sessions

    def _announce(self) -> None:
        """Wake workers, because jobs may have become pending."""


Verb = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]
Bound = Callable[Concatenate[SharedRole, P], Coroutine[Any, Any, T]]


def reading(verb: Verb[P, T]) -> Bound[P, T]:
    """A method that only reads."""

    async def bound(role: SharedRole, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._sessions.read(lambda db: verb(db, *args, **kwargs))

    return bound


def writing(verb: Verb[P, T]) -> Bound[P, T]:
    """A method that is a transaction."""

    async def bound(role: SharedRole, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._sessions.write(lambda db: verb(db, *args, **kwargs))

    return bound


def announcing(verb: Verb[P, T]) -> Bound[P, T]:
    """A method that is a transaction, and then wakes workers."""

    async def bound(role: SharedRole, /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer = await role._sessions.write(lambda db: verb(db, *args, **kwargs))
        role._announce()
        return answer

    return bound
