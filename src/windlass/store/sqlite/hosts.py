"""Whose transaction it is: the connections of callers that an SQLite store can be a guest on.

A library is recognised by what it is, never imported: a program that does not use SQLAlchemy or Django needs neither.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from windlass.errors import InvalidOption, StoreUnavailable

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
    if not _is_of(connection, "sqlalchemy"):
        raise InvalidOption("connection", f"must be {KINDS}, not {_shown(connection)}")
    run_sync = getattr(connection, "run_sync", None)
    if run_sync is None:
        return work(_of_sqlalchemy(connection))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidOption("connection", "is asynchronous: use `await aenqueue()`") from None
    answer: T = await run_sync(lambda inner: work(_of_sqlalchemy(inner)))
    return answer


def _of_sqlalchemy(connection: Any) -> Host:
    if not hasattr(connection, "exec_driver_sql") and not callable(getattr(connection, "connection", None)):
        raise InvalidOption("connection", f"must be {KINDS}, not {_shown(connection)}, which is in no transaction")
    try:
        inner = connection if hasattr(connection, "exec_driver_sql") else connection.connection()
        if not inner.in_transaction():
            # As any first statement would do: without it their commit() would have nothing to commit.
            inner.begin()
        pooled = inner.connection
    except Exception as error:
        raise StoreUnavailable(f"connection: {error}") from error
    if not isinstance(pooled.driver_connection, sqlite3.Connection) and not _is_of(
        pooled.driver_connection, "aiosqlite"
    ):
        raise InvalidOption("connection", f"is not of sqlite3 but of {_shown(pooled.driver_connection)}")
    return Host(pooled.dbapi_connection.cursor, pooled.driver_connection)


def _of_django(alias: str) -> Host:
    django = sys.modules.get("django.db")
    if django is None:
        raise InvalidOption("connection", f"must be {KINDS}; Django is not in use here, so {alias!r} is no alias")
    if alias not in django.connections:
        raise InvalidOption("connection", f"{alias!r} is no alias of DATABASES")
    wrapper = django.connections[alias]
    try:
        wrapper.ensure_connection()
    except Exception as error:
        raise StoreUnavailable(f"connection: {error}") from error
    inner = wrapper.connection
    if not isinstance(inner, sqlite3.Connection):
        raise InvalidOption("connection", f"{alias!r} is not of sqlite3 but of {_shown(inner)}")
    return Host(inner.cursor, inner)


def _is_of(thing: object, library: str) -> bool:
    return any(kind.__module__.partition(".")[0] == library for kind in type(thing).__mro__)


def _shown(thing: object) -> str:
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
