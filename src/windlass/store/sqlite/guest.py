"""A guest in a caller's transaction: what is written exists if and only if the caller commits."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from windlass.errors import InvalidOption, SchemaMismatch, StoreUnavailable
from windlass.store.sqlite.by_stdlib import neutral
from windlass.store.sqlite.connection import Values
from windlass.store.sqlite.hosts import Host
from windlass.store.sqlite.libraries import identity
from windlass.store.sqlite.migrate import is_current
from windlass.store.sqlite.trouble import DriverError, Trouble, translate
from windlass.store.sqlite.versions import can_damage, check_version

T = TypeVar("T")


class NoTables(Exception):
    """Our tables are missing, and the caller is in no transaction yet: they can be made, then asked again."""


class Guest:
    """The statements of a caller's connection, whatever the caller made of its rows and texts."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""
        try:
            cursor = self._host.cursor()
            cursor.execute(text, values)
            found: list[Any] = cursor.fetchall()
            cursor.close()
            return found
        except sqlite3.Error as error:
            raise neutral(error) from error

    def run(self, text: str, values: Values = ()) -> int:
        """Execute; how many rows it changed."""
        before = self._host.state.total_changes
        self.rows(text, values)
        return int(self._host.state.total_changes - before)

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""
        try:
            cursor = self._host.cursor()
            cursor.executemany(text, values)
            cursor.close()
        except sqlite3.Error as error:
            raise neutral(error) from error

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._host.state.in_transaction)

    @property
    def begins_by_itself(self) -> bool:
        """Whether the caller leaves it to sqlite3 to begin: then commit() and rollback() end what we begin."""
        legacy = getattr(self._host.state, "autocommit", -1) == -1
        return legacy and self._host.state.isolation_level is not None

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """Rows as tuples and texts as str, for as long as we are here."""
        state = self._host.state
        was = state.row_factory, state.text_factory
        state.row_factory, state.text_factory = None, str
        try:
            yield
        finally:
            state.row_factory, state.text_factory = was


def stay(host: Host, path: Path, work: Callable[[Guest], T]) -> T:
    """Do the work in the caller's transaction. If it fails, that transaction is as it was before."""
    guest = Guest(host)
    try:
        with guest.plainly():
            _check_file(guest, path)
            _check_tables(guest, path)
            _spare_checkpoints(guest)
            with _transaction(guest, path):
                return work(guest)
    except sqlite3.Error as error:  # the connection is closed, or of another thread
        raise StoreUnavailable(f"connection: {error}") from error
    except DriverError as error:
        raise translate(error, path) from error


@contextlib.contextmanager
def _transaction(guest: Guest, path: Path) -> Iterator[None]:
    joined = guest.in_transaction
    if not joined:
        _begin(guest)
    try:
        guest.run("SAVEPOINT windlass_guest")
        yield
        guest.run("RELEASE windlass_guest")
    except BaseException as error:
        if joined and not guest.in_transaction:
            # A full disk or a failed write ends a transaction by itself.
            raise StoreUnavailable(f"{path}: {error}; SQLite has rolled your transaction back") from error
        _undo(guest, joined)
        if joined and isinstance(error, DriverError) and error.trouble is Trouble.BUSY:
            hint = "if your transaction reads before it writes, begin it with BEGIN IMMEDIATE"
            raise StoreUnavailable(f"{translate(error, path)}; {hint}") from error
        raise


def _undo(guest: Guest, joined: bool) -> None:
    """As if we had never been there."""
    with contextlib.suppress(DriverError):  # the savepoint itself may be what failed
        if joined:
            guest.run("ROLLBACK TO windlass_guest")
            guest.run("RELEASE windlass_guest")
        elif guest.in_transaction:
            guest.run("ROLLBACK")


def _begin(guest: Guest) -> None:
    if not guest.begins_by_itself:
        raise InvalidOption("connection", "is in no transaction: begin one first, your commit then decides")
    guest.run("BEGIN IMMEDIATE")


def _check_file(guest: Guest, path: Path) -> None:
    files = [file for _, name, file in guest.rows("PRAGMA database_list") if name == "main"]
    theirs = files[0] if files else ""
    if not theirs or identity(theirs) != identity(path):
        raise InvalidOption("connection", f"is open on {theirs or 'no file'}, and the jobs are in {path}")


def _check_tables(guest: Guest, path: Path) -> None:
    if is_current(guest):
        return
    if not guest.in_transaction:
        raise NoTables
    raise SchemaMismatch(
        f"{path} has not got this version's tables yet, and they cannot be made inside your transaction: run "
        "`windlass migrate` first"
    )


def _spare_checkpoints(guest: Guest) -> None:
    """Their commits come outside of our turn: with a library that must not checkpoint beside others, they do not."""
    check_version(sqlite3.sqlite_version_info)
    if can_damage(sqlite3.sqlite_version_info):
        guest.rows("PRAGMA wal_autocheckpoint = 0")
