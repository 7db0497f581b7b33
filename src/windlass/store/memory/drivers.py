"""Callers whose driver reports no commits: the next call of the store reads the outcome from their database.

In SQLite a row of Windlass is written in the caller's transaction, and exists if that has committed. PostgreSQL
reports how a transaction, or its part since a savepoint, has ended. The query uses a connection of its own: the
caller's may be closed, in use or on an event loop by then.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import quote

from windlass.core.ids import new_id
from windlass.errors import InvalidOption, StoreUnavailable
from windlass.store.callers import require_loop, shown
from windlass.store.memory.batch import Batch, Caller

_CREATE = "CREATE TABLE IF NOT EXISTS windlass_testing (enqueue TEXT PRIMARY KEY)"
_INSERT = "INSERT INTO windlass_testing VALUES (?)"
_SELECT = "SELECT 1 FROM windlass_testing WHERE enqueue = ?"
_NO_TRANSACTION = "is in no transaction: {}; your commit then decides"
_FAILED = "25P02"
_XIDS = (
    "SELECT concat_ws(' ', pg_current_xact_id()::text, string_agg(transactionid::text, ' ')) FROM pg_locks "
    "WHERE locktype = 'transactionid' AND pid = pg_backend_pid() AND mode = 'ExclusiveLock' AND granted"
)
_ASSIGN_XID = "SELECT pg_logical_emit_message(true, 'windlass', '')::text"
"""The part of a transaction since a savepoint gets its own id with its first write; this one stores nothing."""
_EPOCH = 1 << 32

Ask = Callable[[str], str]
"""Runs a query for one text, on a new connection to the caller's server."""


def driver_caller(connection: Any, kinds: str) -> Caller:
    """The caller with this connection of a driver."""
    psycopg, psycopg2, asyncpg = (sys.modules.get(name) for name in ("psycopg", "psycopg2.extensions", "asyncpg"))
    if isinstance(connection, sqlite3.Connection):
        return SqliteCaller(connection)
    if psycopg is not None and isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        return _of_psycopg(connection, psycopg)
    if psycopg2 is not None and isinstance(connection, psycopg2.connection):
        return _of_psycopg2(connection, psycopg2)
    if asyncpg is not None and isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
        return _of_asyncpg(connection, asyncpg)
    raise InvalidOption("connection", f"must be {kinds}, not {shown(connection)}")


class SqliteCaller:
    """A sqlite3 connection. A row in a table of Windlass exists if the transaction has committed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.owner = connection
        try:
            files = {name: file for _, name, file in _rows(connection, "PRAGMA database_list")}
        except sqlite3.Error as error:
            raise StoreUnavailable(f"connection: {error}") from error
        self._file = files["main"]
        legacy = getattr(connection, "autocommit", -1) == -1
        if not legacy and not self._file:
            raise InvalidOption(
                "connection",
                "has autocommit set, on a database in memory: its commits cannot be detected; use a file",
            )
        if not connection.in_transaction and not (legacy and connection.isolation_level is not None):
            raise InvalidOption("connection", _NO_TRANSACTION.format("begin one first"))

    async def join(self, batch: Batch) -> None:
        token, begins = new_id(), not self.owner.in_transaction
        try:
            if begins:
                _rows(self.owner, "BEGIN IMMEDIATE")  # as sqlite3 does before a statement that writes
            _rows(self.owner, _CREATE)
            _rows(self.owner, _INSERT, token)
        except sqlite3.Error as error:
            if begins and self.owner.in_transaction:
                _rows(self.owner, "ROLLBACK")
            raise StoreUnavailable(f"connection: {error}") from error
        batch.look = partial(self._look_at_file if self._file else self._look_inside, batch, token)

    def _look_at_file(self, batch: Batch, token: str) -> None:
        """Read the file through another connection, which sees only what is committed."""
        try:
            with closing(sqlite3.connect(f"file:{quote(self._file)}?mode=rw", uri=True, timeout=0)) as other:
                if _is_there(other, token):
                    batch.commit()
        except sqlite3.OperationalError:
            pass  # locked by the transaction, or there is no table, or no file any more: not committed

    def _look_inside(self, batch: Batch, token: str) -> None:
        """Read through the caller's connection, the only one of a database in memory."""
        try:
            if not self.owner.in_transaction:
                (batch.commit if _is_there(self.owner, token) else batch.undo)()
        except sqlite3.OperationalError:
            batch.undo()  # the table is gone too
        except sqlite3.ProgrammingError as error:
            batch.undo()
            raise InvalidOption(
                "connection", f"to a database in memory cannot be asked whether it committed: {error}"
            ) from error


def _is_there(connection: sqlite3.Connection, token: str) -> bool:
    return bool(_rows(connection, _SELECT, token))


def _rows(connection: sqlite3.Connection, text: str, *values: str) -> list[Any]:
    """The rows as tuples, whatever factories the caller has set."""
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    try:
        return cursor.execute(text, values).fetchall()
    finally:
        cursor.close()


class PostgresCaller:
    """A connection to PostgreSQL, of any driver."""

    def __init__(self, connection: Any, fetch: Callable[[str], Awaitable[str]], ask: Ask) -> None:
        self.owner = connection
        self._fetch = fetch
        self._ask = ask

    async def join(self, batch: Batch) -> None:
        try:
            await self._fetch(_ASSIGN_XID)
            xid = _newest(await self._fetch(_XIDS))
        except Exception as error:
            if getattr(error, "sqlstate", getattr(error, "pgcode", None)) == _FAILED:
                raise InvalidOption(
                    "connection", "is in a transaction that has failed: roll it back first"
                ) from error
            raise StoreUnavailable(f"connection: {error}") from error

        def look() -> None:
            status = self._ask(f"SELECT pg_xact_status('{xid}'::xid8)")
            if status != "in progress":
                (batch.commit if status == "committed" else batch.undo)()

        batch.look = look


def _newest(xids: str) -> int:
    """The id of the innermost part of a transaction; only the id of the whole includes the epoch."""
    whole, *parts = map(int, xids.split())
    return max([whole, *(whole + (part - whole) % _EPOCH for part in parts)])


def _of_psycopg(connection: Any, psycopg: Any) -> Caller:
    if connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF:
        raise InvalidOption("connection", "is in pipeline mode: enqueue before or after it, not inside")
    if connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        raise InvalidOption("connection", _NO_TRANSACTION.format("use `with connection.transaction():`"))
    is_async = isinstance(connection, psycopg.AsyncConnection)
    if is_async:
        require_loop()

    async def fetch(text: str) -> str:
        if is_async:
            async with psycopg.AsyncCursor(connection, row_factory=psycopg.rows.scalar_row) as cursor:
                await cursor.execute(text)
                return str(await cursor.fetchone())
        with psycopg.Cursor(connection, row_factory=psycopg.rows.scalar_row) as cursor:
            return str(cursor.execute(text).fetchone())

    dsn, password = connection.info.dsn, connection.info.password

    def ask(text: str) -> str:
        with psycopg.connect(dsn, password=password, autocommit=True) as other:
            return str(other.execute(text).fetchone()[0])

    return PostgresCaller(connection, fetch, ask)


def _of_psycopg2(connection: Any, extensions: Any) -> Caller:
    if connection.async_:
        raise InvalidOption("connection", "is an asynchronous one of psycopg2, which has no transactions")
    idle = connection.info.transaction_status == extensions.TRANSACTION_STATUS_IDLE
    if connection.autocommit and idle:
        raise InvalidOption("connection", _NO_TRANSACTION.format("set autocommit = False"))

    def read(one: Any, text: str) -> str:
        with one.cursor(cursor_factory=extensions.cursor) as cursor:
            cursor.execute(text)
            return str(cursor.fetchone()[0])

    async def fetch(text: str) -> str:
        return read(connection, text)

    parameters = {**connection.info.dsn_parameters, "password": connection.info.password}

    def ask(text: str) -> str:
        with closing(sys.modules["psycopg2"].connect(**parameters)) as other:
            return read(other, text)

    return PostgresCaller(connection, fetch, ask)


def _host_and_port(address: tuple[str, int] | str) -> tuple[str, int]:
    """The host and port of asyncpg's address, which may be the path of a socket."""
    if isinstance(address, str):
        folder, _, port = address.rpartition("/.s.PGSQL.")
        return folder, int(port)
    return address


def _of_asyncpg(connection: Any, asyncpg: Any) -> Caller:
    require_loop()
    inner = getattr(connection, "_con", connection)  # a pool lends it in a wrapper, a new one each time
    if not inner.is_in_transaction():
        raise InvalidOption("connection", _NO_TRANSACTION.format("use `async with connection.transaction():`"))
    (host, port), given = _host_and_port(inner._addr), inner._params
    # There may be a context that is not used, because the server has no TLS.
    ssl = given.ssl if inner._transport.get_extra_info("ssl_object") else False

    async def ask_async(text: str) -> str:
        other = await asyncpg.connect(
            host=host, port=port, user=given.user, password=given.password, database=given.database, ssl=ssl
        )
        try:
            return str(await other.fetchval(text))
        finally:
            await other.close()

    def ask(text: str) -> str:
        # In another thread: a loop that runs in this one must not continue in between.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: asyncio.run(ask_async(text))).result()

    return PostgresCaller(inner, connection.fetchval, ask)
