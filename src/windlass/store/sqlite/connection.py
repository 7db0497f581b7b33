"""One connection to the database file, and the one place where the driver's errors become ours."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw

from windlass.errors import StoreUnavailable

BUSY_TIMEOUT_MS = 10_000
"""For writers that do not take our turn, such as the sqlite3 shell; ours never wait here."""

STEPS_BETWEEN_LOOKS = 10_000
"""Of the engine, between two looks at the time where a statement may take only so long: a millisecond or less."""

Values = Mapping[str, Any] | Sequence[Any]
T = TypeVar("T")


class Connection:
    """A connection used by one thread at a time."""

    def __init__(self, path: Path, *, synchronous: str, writes: bool) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if writes else 0)
        try:
            self._apsw = self._open(path, flags)
            self._apsw.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Plans do not depend on bound values: else most statements would be prepared anew at each execution,
            # which takes ten times as long as executing them. A claim: 80 µs without, 7 µs with it.
            self._apsw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            if writes:
                self._prepare(synchronous)
        except apsw.Error as error:
            raise translate(error, path) from error
        self._path = path
        self._file = _identity(path)

    @classmethod
    def to_look(cls, path: Path, *, alone: bool) -> "Connection":
        """A connection that changes nothing; `alone`, when nobody has the file open, it needs no companions."""
        # As an URI, for only there the engine can be told that nobody writes: else it makes a log beside the file.
        address = f"file:{quote(str(path))}?mode=ro" + ("&immutable=1" if alone else "")
        connection = cls.__new__(cls)
        try:
            connection._apsw = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            connection._apsw.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection._apsw.execute("PRAGMA trusted_schema = 0")
        except apsw.Error as error:
            raise translate(error, path) from error
        connection._path, connection._file = path, _identity(path)
        return connection

    def _open(self, path: Path, flags: int) -> apsw.Connection:
        return apsw.Connection(str(path), flags=flags, statementcachesize=200)

    def _prepare(self, synchronous: str) -> None:
        run = self._apsw.execute
        if run("PRAGMA journal_mode = WAL").fetchall() != [("wal",)]:
            raise StoreUnavailable("the database cannot use a write-ahead log here")
        run(f"PRAGMA synchronous = {synchronous}")
        if sys.platform == "darwin":
            run("PRAGMA fullfsync = 1")
            run("PRAGMA checkpoint_fullfsync = 1")
        run("PRAGMA journal_size_limit = 67108864")
        run("PRAGMA trusted_schema = 0")

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""
        return self._apsw.execute(text, values).fetchall()

    def run(self, text: str, values: Values = ()) -> int:
        """Execute; how many rows it changed."""
        self._apsw.execute(text, values)
        return self._apsw.changes()

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""
        self._apsw.executemany(text, values)

    def try_begin(self) -> bool:
        """Begin a write transaction if no other program holds the write lock now."""
        self._apsw.set_busy_timeout(0)
        try:
            self.run("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        finally:
            self._apsw.set_busy_timeout(BUSY_TIMEOUT_MS)
        return True

    def within(self, seconds: float | None, work: Callable[[], T]) -> T:
        """Do some reading; what takes longer is broken off with an InterruptError."""
        if seconds is None:
            return work()
        end = time.monotonic() + seconds
        self._apsw.set_progress_handler(lambda: time.monotonic() > end, STEPS_BETWEEN_LOOKS)
        try:
            return work()
        finally:
            self._apsw.set_progress_handler(None)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open: the engine may have ended it by itself after an error."""
        return self._apsw.in_transaction

    def has_moved(self) -> bool:
        """Whether the file was deleted or replaced: what is written here from now on, nobody will ever see."""
        return _identity(self._path) != self._file

    def data_version(self) -> int:
        """A number that changes when another connection commits."""
        return int(self._apsw.pragma("data_version"))

    def close(self) -> None:
        """Close for good."""
        self._apsw.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_LASTING = (apsw.ReadOnlyError, apsw.CantOpenError, apsw.NotADBError, apsw.CorruptError)


def translate(error: apsw.Error, path: Path, *, maybe_done: bool = False) -> StoreUnavailable:
    """What went wrong, in a sentence that says what to do about it."""
    sentences: dict[type[apsw.Error], str] = {
        apsw.BusyError: f"{path} is busy: another program holds its write lock",
        apsw.FullError: f"the disk of {path} is full",
        apsw.ReadOnlyError: f"{path} cannot be written: check the rights of the file and its folder",
        apsw.CantOpenError: f"{path} cannot be opened: check that its folder exists and can be written",
        apsw.NotADBError: f"{path} is not an SQLite database",
        apsw.CorruptError: f"{path} is damaged; restore it from a back-up",
        apsw.IOError: f"reading or writing {path} failed: {error}",
    }
    sentence = sentences.get(type(error), f"{path}: {error}")
    # Full and busy are refusals; after a failed write nobody knows what reached the disk.
    unsure = maybe_done and not isinstance(error, apsw.FullError | apsw.BusyError)
    return StoreUnavailable(sentence, maybe_done=unsure, lasting=isinstance(error, _LASTING))
