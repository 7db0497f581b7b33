"""Enqueue in a caller's transaction: the jobs exist if and only if the caller commits."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from windlass.errors import InvalidOption, SchemaMismatch, StoreUnavailable
from windlass.store.callers import is_of, of_django, of_sqlalchemy, require_loop, shown
from windlass.store.sqlite.connection.base import DriverError, ErrorKind, Values, to_store_error
from windlass.store.sqlite.connection.files import real_path, second_name
from windlass.store.sqlite.connection.libraries import identity
from windlass.store.sqlite.connection.stdlib_driver import can_corrupt, check_version, driver_error
from windlass.store.sqlite.migrate import is_current

T = TypeVar("T")

KINDS = "a connection of sqlite3, a Connection or Session of SQLAlchemy (also the async ones), or an alias of Django"


class CallerConnection(msgspec.Struct, frozen=True):
    """A caller's connection."""

    cursor: Callable[[], Any]
    state: Any
    """The sqlite3.Connection, or aiosqlite's, which has the same attributes."""


async def with_caller_connection(connection: object, work: Callable[[CallerConnection], T]) -> T:
    """Run the work in the connection's thread. With a synchronous connection this never suspends."""
    if isinstance(connection, sqlite3.Connection):
        return work(CallerConnection(connection.cursor, connection))
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


def _of_sqlalchemy(connection: Any) -> CallerConnection:
    pooled = of_sqlalchemy(connection, KINDS).connection
    if not isinstance(pooled.driver_connection, sqlite3.Connection) and not is_of(
        pooled.driver_connection, "aiosqlite"
    ):
        raise InvalidOption("connection", f"is not of sqlite3 but of {shown(pooled.driver_connection)}")
    return CallerConnection(pooled.dbapi_connection.cursor, pooled.driver_connection)


def _of_django(alias: str) -> CallerConnection:
    inner = of_django(alias, KINDS).connection
    if not isinstance(inner, sqlite3.Connection):
        raise InvalidOption("connection", f"{alias!r} is not of sqlite3 but of {shown(inner)}")
    return CallerConnection(inner.cursor, inner)


class MissingTables(Exception):
    """Tables are missing, and the caller has no open transaction: the tables can be created first."""


class CallerTransaction:
    """Statements on a caller's connection."""

    def __init__(self, caller: CallerConnection) -> None:
        self._caller = caller

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""
        try:
            cursor = self._caller.cursor()
            cursor.execute(text, values)
            found: list[Any] = cursor.fetchall()
            cursor.close()
            return found
        except sqlite3.Error as error:
            raise driver_error(error) from error

    def run(self, text: str, values: Values = ()) -> int:
        """Execute a statement; returns the number of changed rows."""
        before = self._caller.state.total_changes
        self.rows(text, values)
        return int(self._caller.state.total_changes - before)

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""
        try:
            cursor = self._caller.cursor()
            cursor.executemany(text, values)
            cursor.close()
        except sqlite3.Error as error:
            raise driver_error(error) from error

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._caller.state.in_transaction)

    @property
    def begins_implicitly(self) -> bool:
        """Whether the caller leaves BEGIN to sqlite3: then commit() and rollback() end what we begin."""
        legacy = getattr(self._caller.state, "autocommit", -1) == -1
        return legacy and self._caller.state.isolation_level is not None

    @contextlib.contextmanager
    def plain_rows(self) -> Iterator[None]:
        """Rows as tuples and texts as str, whatever factories the caller has set."""
        state = self._caller.state
        was = state.row_factory, state.text_factory
        state.row_factory, state.text_factory = None, str
        try:
            yield
        finally:
            state.row_factory, state.text_factory = was


def in_transaction_of(
    caller: CallerConnection, path: Path, work: Callable[[CallerTransaction], T], *, reads: bool = False
) -> T:
    """Run the work in the caller's transaction, which is unchanged if the work fails or only reads."""
    transaction = CallerTransaction(caller)
    try:
        with transaction.plain_rows():
            _check_file(transaction, path)
            _check_tables(transaction, path)
            _avoid_checkpoints(transaction)
            with _snapshot(transaction) if reads else _savepoint(transaction, path):
                return work(transaction)
    except sqlite3.Error as error:  # the connection is closed, or belongs to another thread
        raise StoreUnavailable(f"connection: {error}") from error
    except DriverError as error:
        raise to_store_error(error, path) from error


@contextlib.contextmanager
def _savepoint(transaction: CallerTransaction, path: Path) -> Iterator[None]:
    joined = transaction.is_open
    if not joined:
        _begin(transaction)
    try:
        transaction.run("SAVEPOINT windlass_enqueue")
        yield
        transaction.run("RELEASE windlass_enqueue")
    except BaseException as error:
        if joined and not transaction.is_open:
            # A full disk or a failed write ends the transaction.
            raise StoreUnavailable(f"{path}: {error}; SQLite has rolled back your transaction") from error
        _undo(transaction, joined)
        if joined and isinstance(error, DriverError) and error.kind is ErrorKind.BUSY:
            hint = "if your transaction reads before it writes, begin it with BEGIN IMMEDIATE"
            raise StoreUnavailable(f"{to_store_error(error, path)}; {hint}") from error
        raise


@contextlib.contextmanager
def _snapshot(transaction: CallerTransaction) -> Iterator[None]:
    """Read in a transaction; one that is begun here is ended here, because the caller may never commit."""
    joined = transaction.is_open
    if not joined:
        _begin(transaction, "BEGIN")
    try:
        yield
    finally:
        if not joined:
            _undo(transaction, joined)


def _undo(transaction: CallerTransaction, joined: bool) -> None:
    with contextlib.suppress(DriverError):  # the savepoint itself may be what failed
        if joined:
            transaction.run("ROLLBACK TO windlass_enqueue")
            transaction.run("RELEASE windlass_enqueue")
        elif transaction.is_open:
            transaction.run("ROLLBACK")


def _begin(transaction: CallerTransaction, statement: str = "BEGIN IMMEDIATE") -> None:
    if not transaction.begins_implicitly:
        raise InvalidOption("connection", "is in no transaction: begin one first; the jobs exist once you commit")
    transaction.run(statement)


def _check_file(transaction: CallerTransaction, path: Path) -> None:
    files = [file for _, name, file in transaction.rows("PRAGMA database_list") if name == "main"]
    theirs = files[0] if files else ""
    if not theirs or identity(theirs) != identity(path):
        raise InvalidOption("connection", f"is open on {theirs or 'no file'}, and the jobs are in {path}")
    if (their_path := real_path(Path(theirs))) != path and (refusal := second_name(their_path)):
        raise InvalidOption("connection", f"is open on another name of {path}: {refusal}")


def _check_tables(transaction: CallerTransaction, path: Path) -> None:
    if is_current(transaction):
        return
    if not transaction.is_open:
        raise MissingTables
    raise SchemaMismatch(
        f"{path} does not have this version's tables yet, and they cannot be created inside your transaction: run "
        "`windlass migrate` first"
    )


def _avoid_checkpoints(transaction: CallerTransaction) -> None:
    """Turn off checkpoints at the caller's commit, which has no write turn, if this SQLite can corrupt the file."""
    check_version(sqlite3.sqlite_version_info)
    if can_corrupt(sqlite3.sqlite_version_info):
        transaction.rows("PRAGMA wal_autocheckpoint = 0")
