"""Callers' drivers: the connections on which jobs can be enqueued."""

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import asyncpg

from windlass.errors import InvalidOption
from windlass.store.callers import is_of, of_django, of_sqlalchemy, require_loop, shown
from windlass.store.drive import drive
from windlass.store.postgres.connection.access import Server
from windlass.store.postgres.connection.caller_transaction import Host, stay
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.paramstyle import ByAsyncCursor, ByAsyncpg, ByCursor, BySqlalchemy
from windlass.store.postgres.connection.statements import named, numbered

T = TypeVar("T")

KINDS = (
    "a connection of psycopg, psycopg2 or asyncpg, a Connection or Session of SQLAlchemy (also the async ones), "
    "or an alias of Django"
)
DRIVERS = ("psycopg", "psycopg2", "asyncpg")


async def visit(server: Server, connection: object, work: Callable[[Db], Coroutine[Any, Any, T]]) -> T:
    """Work on the caller's connection; a synchronous one without a loop never suspends."""
    run_sync = _run_sync_of(connection)
    if run_sync is None:
        return await stay(server, _host(connection), work)
    answer: T = await run_sync(lambda inner: drive(stay(server, _of_sqlalchemy(inner), work)))
    return answer


def check_kind(connection: object) -> None:
    """Refuse an unsupported connection before anything is done."""
    if _run_sync_of(connection) is None:
        _host(connection)


def _run_sync_of(connection: Any) -> Any:
    run_sync = getattr(connection, "run_sync", None) if is_of(connection, "sqlalchemy") else None
    if run_sync is not None:
        require_loop()
    return run_sync


def _host(connection: Any) -> Host:
    psycopg, psycopg2 = sys.modules.get("psycopg"), sys.modules.get("psycopg2.extensions")
    if isinstance(connection, str):
        return _of_django(connection)
    if is_of(connection, "sqlalchemy"):
        return _of_sqlalchemy(connection)
    if psycopg is not None and isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        return _of_psycopg(connection, psycopg)
    if psycopg2 is not None and isinstance(connection, psycopg2.connection):
        if connection.async_:
            raise InvalidOption("connection", "is an asynchronous one of psycopg2, which knows no transactions")
        # The caller's cursor_factory may make dictionaries.
        cursor = partial(connection.cursor, cursor_factory=psycopg2.cursor)
        return Host(ByCursor(cursor), connection, "set autocommit = False")
    if isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
        require_loop()
        inner = getattr(connection, "_con", connection)  # a pool lends it in a wrapper, a new one each time
        return Host(ByAsyncpg(connection, asyncpg.Record), inner, "use `async with connection.transaction():`")
    raise InvalidOption("connection", f"must be {KINDS}, not {shown(connection)}")


def _of_psycopg(connection: Any, psycopg: Any) -> Host:
    """Plain cursors: cursor_factory and row_factory are the caller's."""
    if connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF:
        raise InvalidOption("connection", "is in pipeline mode: hand in before or after it, not inside")
    if isinstance(connection, psycopg.AsyncConnection):
        require_loop()
        cursor = partial(psycopg.AsyncCursor, connection, row_factory=psycopg.rows.tuple_row)
        return Host(ByAsyncCursor(cursor), connection, "use `async with connection.transaction():`")
    cursor = partial(psycopg.Cursor, connection, row_factory=psycopg.rows.tuple_row)
    return Host(ByCursor(cursor), connection, "use `with connection.transaction():`")


def _of_sqlalchemy(connection: Any) -> Host:
    inner = of_sqlalchemy(connection, KINDS)
    driver = inner.connection.driver_connection
    if not is_of(driver, *DRIVERS):
        raise InvalidOption("connection", f"is not of {', '.join(DRIVERS)} but of {shown(driver)}")
    statements = BySqlalchemy(inner, numbered if is_of(driver, "asyncpg") else named)
    return Host(statements, driver, "its isolation_level is AUTOCOMMIT, use another")


def _of_django(alias: str) -> Host:
    wrapper = of_django(alias, KINDS)
    if not is_of(wrapper.connection, *DRIVERS):
        raise InvalidOption("connection", f"{alias!r} is not of PostgreSQL but of {shown(wrapper.connection)}")
    return Host(ByCursor(wrapper.cursor), wrapper.connection, "use `with transaction.atomic():`")
