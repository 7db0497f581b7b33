"""Work in a caller's transaction: what it writes exists if and only if the caller commits."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import asyncpg
import msgspec

from windlass.errors import InvalidOption, WindlassError
from windlass.store.callers import is_of, of_django, of_sqlalchemy, require_loop, shown
from windlass.store.drive import drive
from windlass.store.postgres.connection.db import Db, Statement, Statements, named, numbered
from windlass.store.postgres.connection.paramstyle import ByAsyncCursor, ByAsyncpg, ByCursor, BySqlalchemy
from windlass.store.postgres.connection.server import Server, identify
from windlass.store.postgres.connection.trouble import NOT_THERE, is_conflict, state_of, translate

T = TypeVar("T")

KINDS = (
    "a connection of psycopg, psycopg2 or asyncpg, a Connection or Session of SQLAlchemy (also the async ones), "
    "or an alias of Django"
)
DRIVERS = ("psycopg", "psycopg2", "asyncpg")
LIBRARIES = (*DRIVERS, "sqlalchemy", "django")

_SAVE = Statement("SAVEPOINT windlass_enqueue", ())
_KEEP = Statement("RELEASE SAVEPOINT windlass_enqueue", ())
_UNDO = Statement("ROLLBACK TO SAVEPOINT windlass_enqueue", ())

_NO_TRANSACTION = "25P01"
_REFUSED = {
    "25P02": "is in a transaction that has failed: roll it back first, because nothing can be done in it any more",
    "25006": "is in a read-only transaction, or open on a server that only reads: no job can be stored with it",
}


class CallerConnection(msgspec.Struct, frozen=True):
    """A caller's connection."""

    statements: Statements
    driver: Any
    """The driver's own connection, which always belongs to one database."""
    begin: str
    """How to begin a transaction on it, as advice in errors."""


async def _run_on(server: Server, caller: CallerConnection, work: Callable[[Db], Coroutine[Any, Any, T]]) -> T:
    """Run work in the caller's transaction, which is unchanged if the work fails."""
    db = Db(caller.statements, server.texts)
    try:
        async with _savepoint(caller.statements):
            await _check_database(server, caller.driver, db)
            return await work(db)
    except Exception as error:
        translated = _error_for(error, server, caller)
        if translated is None:
            raise
        raise translated from error


async def on_own_connection(server: Server, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work on a connection of the store; without an event loop, on a temporary loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(_then_hang_up(server, work))
        finally:
            loop.close()
    return await work()


async def _then_hang_up(server: Server, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        return await work()
    finally:
        await server.hang_up()


@contextlib.asynccontextmanager
async def _savepoint(statements: Statements) -> AsyncIterator[None]:
    """Surround work with a savepoint, which the server refuses outside of a transaction or in a failed one."""
    await statements.run(_SAVE, {})
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # the connection itself may be gone
            await statements.run(_UNDO, {})
            await statements.run(_KEEP, {})
        raise
    await statements.run(_KEEP, {})


async def _check_database(server: Server, driver: Any, db: Db) -> None:
    """Check that the connection is on the store's database: no worker would see a job in another one."""
    if driver in server.verified_connections:
        return
    try:
        theirs = await identify(db)
    except Exception as error:
        if state_of(error) in NOT_THERE:
            raise InvalidOption(
                "connection", f"is open on a database without the schema {db.schema}: the jobs are in {server.shown}"
            ) from error
        raise
    ours = server.identity
    # A transaction that is older than the tables does not see the store's id.
    if ours is None or theirs not in (ours, msgspec.structs.replace(ours, store_id=None)):
        raise InvalidOption("connection", f"is open on database {theirs.name!r}, and the jobs are in {server.shown}")
    with contextlib.suppress(TypeError):  # not hashable, and so checked each time
        server.verified_connections.add(driver)


def _error_for(error: Exception, server: Server, caller: CallerConnection) -> Exception | None:
    """The error to raise instead; None to raise this one.

    A conflict with another transaction is raised unchanged: code that retries transactions expects the error of its
    own library.
    """
    if isinstance(error, UnicodeEncodeError) and error.encoding not in ("utf-8", "utf8"):
        char = error.object[error.start]
        return InvalidOption(
            "connection", f"has a client_encoding, {error.encoding}, that cannot express {char!r}: use UTF8"
        )
    if isinstance(error, WindlassError) or not (isinstance(error, OSError) or is_of(error, *LIBRARIES)):
        return None
    if is_conflict(error):
        return None
    state = state_of(error)
    if state == _NO_TRANSACTION:
        return InvalidOption("connection", f"is in no transaction: {caller.begin}; the jobs exist once you commit")
    if state in _REFUSED:
        return InvalidOption("connection", _REFUSED[state])
    return translate(error, server.shown)


async def run_inside(server: Server, connection: object, work: Callable[[Db], Coroutine[Any, Any, T]]) -> T:
    """Run work on the caller's connection; with a synchronous one, this never suspends."""
    run_sync = _run_sync_of(connection)
    if run_sync is None:
        return await _run_on(server, _caller_of(connection), work)
    answer: T = await run_sync(lambda inner: drive(_run_on(server, _of_sqlalchemy(inner), work)))
    return answer


def check_kind(connection: object) -> None:
    """Refuse an unsupported connection before anything is done."""
    if _run_sync_of(connection) is None:
        _caller_of(connection)


def _run_sync_of(connection: Any) -> Any:
    run_sync = getattr(connection, "run_sync", None) if is_of(connection, "sqlalchemy") else None
    if run_sync is not None:
        require_loop()
    return run_sync


def _caller_of(connection: Any) -> CallerConnection:
    psycopg, psycopg2 = sys.modules.get("psycopg"), sys.modules.get("psycopg2.extensions")
    if isinstance(connection, str):
        return _of_django(connection)
    if is_of(connection, "sqlalchemy"):
        return _of_sqlalchemy(connection)
    if psycopg is not None and isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        return _of_psycopg(connection, psycopg)
    if psycopg2 is not None and isinstance(connection, psycopg2.connection):
        if connection.async_:
            raise InvalidOption("connection", "is an asynchronous one of psycopg2, which has no transactions")
        # The caller's cursor_factory may make dictionaries.
        cursor = partial(connection.cursor, cursor_factory=psycopg2.cursor)
        return CallerConnection(ByCursor(cursor), connection, "set autocommit = False")
    if isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
        require_loop()
        inner = getattr(connection, "_con", connection)  # a pool lends it in a wrapper, a new one each time
        return CallerConnection(
            ByAsyncpg(connection, asyncpg.Record), inner, "use `async with connection.transaction():`"
        )
    raise InvalidOption("connection", f"must be {KINDS}, not {shown(connection)}")


def _of_psycopg(connection: Any, psycopg: Any) -> CallerConnection:
    """Wrap a connection of psycopg; its own cursors are not used, whose factories the caller may have set."""
    if connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF:
        raise InvalidOption("connection", "is in pipeline mode: enqueue before or after it, not inside")
    if isinstance(connection, psycopg.AsyncConnection):
        require_loop()
        cursor = partial(psycopg.AsyncCursor, connection, row_factory=psycopg.rows.tuple_row)
        return CallerConnection(ByAsyncCursor(cursor), connection, "use `async with connection.transaction():`")
    cursor = partial(psycopg.Cursor, connection, row_factory=psycopg.rows.tuple_row)
    return CallerConnection(ByCursor(cursor), connection, "use `with connection.transaction():`")


def _of_sqlalchemy(connection: Any) -> CallerConnection:
    inner = of_sqlalchemy(connection, KINDS)
    driver = inner.connection.driver_connection
    if not is_of(driver, *DRIVERS):
        raise InvalidOption("connection", f"is not of {', '.join(DRIVERS)} but of {shown(driver)}")
    statements = BySqlalchemy(inner, numbered if is_of(driver, "asyncpg") else named)
    return CallerConnection(statements, driver, "its isolation_level is AUTOCOMMIT, use another")


def _of_django(alias: str) -> CallerConnection:
    wrapper = of_django(alias, KINDS)
    if not is_of(wrapper.connection, *DRIVERS):
        raise InvalidOption("connection", f"{alias!r} is not of PostgreSQL but of {shown(wrapper.connection)}")
    return CallerConnection(ByCursor(wrapper.cursor), wrapper.connection, "use `with transaction.atomic():`")
