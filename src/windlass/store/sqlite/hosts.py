"""Whose transaction it is: the connections of callers that an SQLite store can be a guest on."""

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from windlass.errors import InvalidOption
from windlass.store.callers import is_of, of_django, of_sqlalchemy, require_loop, shown

T = TypeVar("T")

KINDS = "a connection of sqlite3, a Connection or Session of SQLAlchemy (also the async ones), or an alias of Django"


class Host(msgspec.Struct, frozen=True):
    """A caller's connection, as far as a guest needs it."""

    cursor: Callable[[], Any]
    state: Any
    """Knows whether it is in a transaction: a sqlite3.Connection, or one of aiosqlite, which says the same."""


async def visit(connection: object, work: Callable[[Host], T]) -> T:
    """Do the work where the connection lives. With a synchronous connection this never suspends."""
    if isinstance(connection, sqlite3.Connection):
        return work(Host(connection.cursor, connection))
    if isinstance(connection, str):
        return work(_of_django(connection))
    if not is_of(connection, "sqlalchemy"):
        raise InvalidOption("connection", f"must be {KINDS}, not {shown(connection)}")
    run_sync = getattr(connection, "run_sync", None)
    if run_sync is None:
        return work(_of_sqlalchemy(connection))
    require_loop()
    answer: T = await run_sync(lambda inner: work(_of_sqlalchemy(inner)))
    return answer


def _of_sqlalchemy(connection: Any) -> Host:
    pooled = of_sqlalchemy(connection, KINDS).connection
    if not isinstance(pooled.driver_connection, sqlite3.Connection) and not is_of(
        pooled.driver_connection, "aiosqlite"
    ):
        raise InvalidOption("connection", f"is not of sqlite3 but of {shown(pooled.driver_connection)}")
    return Host(pooled.dbapi_connection.cursor, pooled.driver_connection)


def _of_django(alias: str) -> Host:
    inner = of_django(alias, KINDS).connection
    if not isinstance(inner, sqlite3.Connection):
        raise InvalidOption("connection", f"{alias!r} is not of sqlite3 but of {shown(inner)}")
    return Host(inner.cursor, inner)
