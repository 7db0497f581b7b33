"""Whose transaction it is: the connections of callers that a PostgreSQL store can be a guest on."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from windlass.errors import InvalidOption
from windlass.store.postgres.access import Server
from windlass.store.postgres.db import Db

T = TypeVar("T")


async def visit(server: Server, connection: object, work: Callable[[Db], Awaitable[T]]) -> T:
    """Do the work in the caller's transaction."""
    raise InvalidOption("connection", "is not supported yet")
