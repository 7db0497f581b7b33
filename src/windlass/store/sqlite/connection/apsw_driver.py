"""The default driver: apsw brings a current SQLite of its own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from windlass.store.sqlite.connection.base import (
    BUSY_TIMEOUT_MS,
    CACHED_STATEMENTS,
    STEPS_PER_CHECK,
    Connection,
    DriverError,
    ErrorKind,
    Values,
)


class ApswConnection(Connection):
    """A connection of apsw."""

    library = "apsw"

    def _open(self, path: Path, *, create: bool) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        try:
            self._apsw = self._connect(path, flags)
            self._apsw.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Without this option SQLite prepares most statements again at each execution: 80 µs a claim instead of 7.
            self._apsw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        except apsw.Error as error:
            raise _driver_error(error) from error

    def _connect(self, path: Path, flags: int) -> apsw.Connection:
        return apsw.Connection(str(path), flags=flags, statementcachesize=CACHED_STATEMENTS)

    def _open_read_only(self, path: Path, *, immutable: bool) -> None:
        # `immutable` needs a URI: without it SQLite creates a log beside the file.
        address = f"file:{quote(str(path))}?mode=ro" + ("&immutable=1" if immutable else "")
        try:
            self._apsw = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            self._apsw.set_busy_timeout(BUSY_TIMEOUT_MS)
        except apsw.Error as error:
            raise _driver_error(error) from error

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        try:
            return self._apsw.execute(text, values).fetchall()
        except apsw.Error as error:
            raise _driver_error(error) from error

    def run(self, text: str, values: Values = ()) -> int:
        try:
            self._apsw.execute(text, values)
            return self._apsw.changes()
        except apsw.Error as error:
            raise _driver_error(error) from error

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        try:
            self._apsw.executemany(text, values)
        except apsw.Error as error:
            raise _driver_error(error) from error

    def _set_busy_timeout(self, milliseconds: int) -> None:
        self._apsw.set_busy_timeout(milliseconds)

    def _set_progress_handler(self, stop: Callable[[], bool] | None) -> None:
        self._apsw.set_progress_handler(stop, STEPS_PER_CHECK)

    @property
    def in_transaction(self) -> bool:
        return self._apsw.in_transaction

    def data_version(self) -> int:
        try:
            return int(self._apsw.pragma("data_version"))
        except apsw.Error as error:
            raise _driver_error(error) from error

    @classmethod
    def header(cls, path: Path) -> bytes:
        # Through the library: closing a descriptor of our own would drop this process's locks on the file.
        file = apsw.VFSFile("", str(path.resolve()), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            return file.xRead(100, 0)
        except apsw.IOError:
            return b""  # shorter than a header
        finally:
            file.xClose()

    def _close(self) -> None:
        try:
            self._apsw.close()
        except apsw.Error as error:
            raise _driver_error(error) from error


_KINDS: dict[type[apsw.Error], ErrorKind] = {
    apsw.BusyError: ErrorKind.BUSY,
    apsw.FullError: ErrorKind.FULL,
    apsw.ReadOnlyError: ErrorKind.READ_ONLY,
    apsw.CantOpenError: ErrorKind.CANNOT_OPEN,
    apsw.NotADBError: ErrorKind.NOT_A_DATABASE,
    apsw.CorruptError: ErrorKind.DAMAGED,
    apsw.IOError: ErrorKind.IO,
    apsw.InterruptError: ErrorKind.INTERRUPTED,
}


def _driver_error(error: apsw.Error) -> DriverError:
    return DriverError(str(error), _KINDS.get(type(error), ErrorKind.OTHER))
