"""Work that callers who wait together may do together: many small hand-ins cost what one large one does."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Generic, TypeVar

from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.request import Request

X = TypeVar("X")
Y = TypeVar("Y")


class Joint(Generic[X, Y]):
    """A verb that takes n and gives n, in order, as if they had come one after the other."""

    __slots__ = ("_open", "items", "verb")

    def __init__(
        self, verb: Callable[[Db, Sequence[X]], list[Y]], items: Sequence[X], open_: Callable[[Connection], Db]
    ) -> None:
        self.verb = verb
        self.items = items
        self._open = open_

    def __call__(self, connection: Connection) -> list[Y]:
        """The caller's own items, alone."""
        return self.verb(self._open(connection), self.items)

    def together(self, connection: Connection, requests: Sequence[Request[Any]]) -> None:
        """Everybody's items at once; each request gets its own answers."""
        items = [item for request in requests for item in request.work.items]  # type: ignore[attr-defined]
        answers = iter(self.verb(self._open(connection), items))
        for request in requests:
            request.result = list(islice(answers, len(request.work.items)))  # type: ignore[attr-defined]


def joined(group: Sequence[Request[Any]]) -> Iterator[list[Request[Any]]]:
    """The group in its order, with neighbours that may be done together side by side."""
    for _, alike in groupby(group, key=_verb):
        yield list(alike)


def _verb(request: Request[Any]) -> object:
    return request.work.verb if isinstance(request.work, Joint) else request
