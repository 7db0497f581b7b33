"""The file through the stdlib's sqlite3, for processes in which other code opens it so: `?driver=sqlite3`."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from windlass.store.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    CACHED_STATEMENTS,
    MAGIC,
    STEPS_BETWEEN_LOOKS,
    WAL,
    Connection,
    Values,
)
from windlass.store.sqlite.trouble import DriverError, Trouble, trouble_of
from windlass.store.sqlite.versions import check_version


class StdlibConnection(Connection):
    """A connection of sqlite3, without its implicit transactions."""

    library = "sqlite3"

    def _open(self, path: Path, *, create: bool) -> None:
        check_version(sqlite3.sqlite_version_info)
        self._connect(f"{path.as_uri()}?mode={'rwc' if create else 'rw'}")

    def _open_to_look(self, path: Path, *, alone: bool) -> None:
        self._connect(f"{path.as_uri()}?mode=ro" + ("&immutable=1" if alone else ""))

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
            raise neutral(error) from error

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        try:
            return self._sqlite3.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise neutral(error) from error

    def run(self, text: str, values: Values = ()) -> int:
        try:
            # A cursor's rowcount knows nothing of statements that begin with WITH.
            before = self._sqlite3.total_changes
            self._sqlite3.execute(text, values)
            return self._sqlite3.total_changes - before
        except sqlite3.Error as error:
            raise neutral(error) from error

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        try:
            self._sqlite3.executemany(text, values)
        except sqlite3.Error as error:
            raise neutral(error) from error

    def _wait_for_writers(self, milliseconds: int) -> None:
        self.rows(f"PRAGMA busy_timeout = {milliseconds}")

    def _ask_between_steps(self, enough: Callable[[], bool] | None) -> None:
        self._sqlite3.set_progress_handler(enough, STEPS_BETWEEN_LOOKS)

    @property
    def in_transaction(self) -> bool:
        return self._sqlite3.in_transaction

    def data_version(self) -> int:
        return int(self.rows("PRAGMA data_version")[0][0])

    @classmethod
    def header(cls, path: Path) -> bytes:
        if not any(path.resolve().with_name(path.resolve().name + end).exists() for end in ("-wal", "-journal")):
            with path.open("rb") as file:  # nobody has it open, so there are no locks to drop
                return file.read(100)
        # sqlite3 has no way to the bytes: what they say, as far as anybody asks.
        connection = cls.to_look(path, alone=False)
        try:
            mode = connection.rows("PRAGMA journal_mode")[0][0]
        except DriverError as error:
            if error.trouble is Trouble.NOT_A_DATABASE:
                return b""
            raise
        finally:
            connection.close()
        return MAGIC + bytes(2) + bytes((WAL, WAL) if mode == "wal" else (1, 1))

    def _close(self) -> None:
        try:
            self._sqlite3.close()
        except sqlite3.Error as error:
            raise neutral(error) from error


def neutral(error: sqlite3.Error) -> Exception:
    """The same error in words that do not depend on the library."""
    message = str(error)
    if message.startswith("Could not decode to UTF-8"):
        return UnicodeDecodeError("utf-8", b"", 0, 0, message)
    return DriverError(message, trouble_of(getattr(error, "sqlite_errorcode", None)))
