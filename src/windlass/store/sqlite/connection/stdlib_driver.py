"""The driver `?driver=sqlite3`: the stdlib's module, for processes in which other code opens the file with it."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from windlass.errors import ConfigError
from windlass.store.sqlite.connection.base import (
    BUSY_TIMEOUT_MS,
    CACHED_STATEMENTS,
    MAGIC,
    STEPS_PER_CHECK,
    WAL,
    Connection,
    DriverError,
    ErrorKind,
    Values,
    error_kind,
)

MIN_VERSION = (3, 38, 0)
"""The first version with built-in JSON, RETURNING and format(), which our statements use."""
FIXED_IN = (3, 51, 3)

Version = tuple[int, ...]


class StdlibConnection(Connection):
    """A connection of sqlite3, without its implicit transactions."""

    library = "sqlite3"

    def _open(self, path: Path, *, create: bool) -> None:
        check_version(sqlite3.sqlite_version_info)
        self._connect(f"{path.as_uri()}?mode={'rwc' if create else 'rw'}")

    def _open_read_only(self, path: Path, *, immutable: bool) -> None:
        self._connect(f"{path.as_uri()}?mode=ro" + ("&immutable=1" if immutable else ""))

    def _connect(self, address: str) -> None:
        try:
            self._sqlite3 = sqlite3.connect(
                address,
                uri=True,
                timeout=BUSY_TIMEOUT_MS / 1000,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=CACHED_STATEMENTS,
            )
        except sqlite3.Error as error:
            raise driver_error(error) from error

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        try:
            return self._sqlite3.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise driver_error(error) from error

    def run(self, text: str, values: Values = ()) -> int:
        try:
            # Not the cursor's rowcount, which ignores statements that begin with WITH.
            before = self._sqlite3.total_changes
            self._sqlite3.execute(text, values)
            return self._sqlite3.total_changes - before
        except sqlite3.Error as error:
            raise driver_error(error) from error

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        try:
            self._sqlite3.executemany(text, values)
        except sqlite3.Error as error:
            raise driver_error(error) from error

    def _set_busy_timeout(self, milliseconds: int) -> None:
        self.rows(f"PRAGMA busy_timeout = {milliseconds}")

    def _set_progress_handler(self, stop: Callable[[], bool] | None) -> None:
        self._sqlite3.set_progress_handler(stop, STEPS_PER_CHECK)

    @property
    def in_transaction(self) -> bool:
        return self._sqlite3.in_transaction

    def data_version(self) -> int:
        return int(self.rows("PRAGMA data_version")[0][0])

    @classmethod
    def header(cls, path: Path) -> bytes:
        if not any(path.resolve().with_name(path.resolve().name + end).exists() for end in ("-wal", "-journal")):
            with path.open("rb") as file:  # no process has the file open, so there is no lock to drop
                return file.read(100)
        # sqlite3 gives no access to the bytes: rebuild the part of the header that is checked.
        connection = cls.read_only(path, immutable=False)
        try:
            mode = connection.rows("PRAGMA journal_mode")[0][0]
        except DriverError as error:
            if error.kind is ErrorKind.NOT_A_DATABASE:
                return b""
            raise
        finally:
            connection.close()
        return MAGIC + bytes(2) + bytes((WAL, WAL) if mode == "wal" else (1, 1))

    def _close(self) -> None:
        try:
            self._sqlite3.close()
        except sqlite3.Error as error:
            raise driver_error(error) from error


def driver_error(error: sqlite3.Error) -> Exception:
    """The error of sqlite3 as a DriverError, or as the UnicodeDecodeError that apsw raises."""
    message = str(error)
    if message.startswith("Could not decode to UTF-8"):
        return UnicodeDecodeError("utf-8", b"", 0, 0, message)
    return DriverError(message, error_kind(getattr(error, "sqlite_errorcode", None)))


def _shown(version: Version) -> str:
    return ".".join(map(str, version))


def check_version(version: Version) -> None:
    """Refuse a library that is too old; warn once per process about one that can damage a file."""
    if version < MIN_VERSION:
        raise ConfigError(
            f"driver=sqlite3: this Python has SQLite {_shown(version)}, and the oldest that Windlass can use is "
            f"{_shown(MIN_VERSION)}: leave the option out (apsw brings its own), or use a newer Python"
        )
    if can_corrupt(version):
        _warn(version)


def can_corrupt(version: Version) -> bool:
    """Whether a checkpoint and a concurrent write of another connection can damage the file."""
    return (3, 7, 0) <= version < FIXED_IN


@cache
def _warn(version: Version) -> None:
    logging.getLogger("windlass").warning(
        "driver=sqlite3: this Python has SQLite %s. Versions 3.7.0 to 3.51.2 can, very rarely, damage a file that "
        "several connections write; Windlass lets only one of them checkpoint at a time. A Python with SQLite %s or "
        "newer is safe, and so is the default driver",
        _shown(version),
        _shown(FIXED_IN),
    )
