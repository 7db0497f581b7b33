"""One connection to the database file, whichever library opens it, and its errors."""

import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection.files import write_obstacle
from windlass.store.sqlite.connection.libraries import LIBRARIES, identity

BUSY_TIMEOUT_MS = 10_000
"""How long to wait for programs that write without the write turn, such as the sqlite3 shell."""
CACHED_STATEMENTS = 200
MAX_LOG_PAGES = 1_000
"""A commit that leaves a longer log copies it into the file."""
MAGIC = b"SQLite format 3\0"
WAL = 2
"""Bytes 18 and 19 of the file header in WAL mode."""
STEPS_PER_CHECK = 10_000
"""Engine steps between two checks of a time limit: a millisecond or less."""

Values = Mapping[str, Any] | Sequence[Any]
T = TypeVar("T")


class ErrorKind(IntEnum):
    """The errors that Windlass distinguishes, by SQLite's result codes."""

    OTHER = 0
    BUSY = 5
    READ_ONLY = 8
    INTERRUPTED = 9
    IO = 10
    DAMAGED = 11
    FULL = 13
    CANNOT_OPEN = 14
    NOT_A_DATABASE = 26


_KNOWN = frozenset(ErrorKind)
_RIGHTS = frozenset({ErrorKind.READ_ONLY, ErrorKind.CANNOT_OPEN})
_LASTING = frozenset({ErrorKind.READ_ONLY, ErrorKind.CANNOT_OPEN, ErrorKind.NOT_A_DATABASE, ErrorKind.DAMAGED})
_REFUSALS = frozenset({ErrorKind.FULL, ErrorKind.BUSY})


class DriverError(Exception):
    """An error of either library; connections raise no other."""

    def __init__(self, message: str, kind: ErrorKind) -> None:
        super().__init__(message)
        self.kind = kind


def error_kind(code: int | None) -> ErrorKind:
    """The kind of a result code; extended codes have it in their lowest byte."""
    primary = (code or 0) & 0xFF
    return ErrorKind(primary) if primary in _KNOWN else ErrorKind.OTHER


def to_store_error(error: DriverError, path: Path, *, maybe_done: bool = False) -> StoreUnavailable:
    """A StoreUnavailable that says what went wrong and what to do about it."""
    sentences = {
        ErrorKind.BUSY: f"{path} is busy: another program holds its write lock",
        ErrorKind.FULL: f"the disk of {path} is full",
        ErrorKind.READ_ONLY: f"{path} cannot be written: check the permissions of the file and its folder",
        ErrorKind.CANNOT_OPEN: f"{path} cannot be opened: check that its folder exists and can be written",
        ErrorKind.NOT_A_DATABASE: f"{path} is not an SQLite database",
        ErrorKind.DAMAGED: f"{path} is damaged; restore it from a back-up",
        ErrorKind.IO: f"reading or writing {path} failed: {error}",
    }
    sentence = sentences.get(error.kind, f"{path}: {error}")
    if error.kind in _RIGHTS:
        sentence = write_obstacle(path) or sentence
    # FULL and BUSY are refusals; after a failed write it is unknown what reached the disk.
    unknown = maybe_done and error.kind not in _REFUSALS
    return StoreUnavailable(sentence, maybe_done=unknown, lasting=error.kind in _LASTING)


class Statements(Protocol):
    """The part of a connection that verbs use."""

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""

    def run(self, text: str, values: Values = ()) -> int:
        """Execute a statement; returns the number of changed rows."""

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""


class Connection(ABC):
    """A connection used by one thread at a time; one subclass for each library."""

    library: ClassVar[str]
    """In one process, one library alone opens a file."""

    def __init__(self, path: Path, *, synchronous: str, writes: bool, name: Path | None = None) -> None:
        """`name` may lead to the path through symbolic links, which may change."""
        self._name = str(name or path)
        before = identity(path)
        try:
            with LIBRARIES.opening(path, self, self.library):
                self._open(path, create=writes)
            # Before _prepare, which may wait for a write lock: a file that is replaced meanwhile is not ours.
            self._file = before or identity(path)
            if writes:
                self._prepare(synchronous)
        except DriverError as error:
            with contextlib.suppress(DriverError, AttributeError):  # the connection may not be open yet
                self.close()
            raise to_store_error(error, path) from error

    @classmethod
    def read_only(cls, path: Path, *, immutable: bool) -> Self:
        """A connection that changes nothing; `immutable` needs no companion files, if nothing has the file open."""
        connection = cls.__new__(cls)
        connection._name = str(path)
        try:
            with LIBRARIES.opening(path, connection, cls.library):
                connection._open_read_only(path, immutable=immutable)
            connection.rows("PRAGMA trusted_schema = 0")
        except DriverError as error:
            raise to_store_error(error, path) from error
        connection._file = identity(path)
        return connection

    def _prepare(self, synchronous: str) -> None:
        if self.rows("PRAGMA journal_mode = WAL") != [("wal",)]:
            raise StoreUnavailable("the database cannot use a write-ahead log here")
        self.rows(f"PRAGMA synchronous = {synchronous}")
        if sys.platform == "darwin":
            self.rows("PRAGMA fullfsync = 1")
            self.rows("PRAGMA checkpoint_fullfsync = 1")
        self.rows("PRAGMA journal_size_limit = 67108864")
        # The coordinator runs most checkpoints: inside commits they would delay one job in a hundred.
        self.rows(f"PRAGMA wal_autocheckpoint = {MAX_LOG_PAGES}")
        # Keep statement journals in memory: as files they would be half of all bytes written while a queue drains.
        self.rows("PRAGMA temp_store = MEMORY")
        self.rows("PRAGMA trusted_schema = 0")

    @abstractmethod
    def _open(self, path: Path, *, create: bool) -> None: ...

    @abstractmethod
    def _open_read_only(self, path: Path, *, immutable: bool) -> None: ...

    @abstractmethod
    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""

    @abstractmethod
    def run(self, text: str, values: Values = ()) -> int:
        """Execute a statement; returns the number of changed rows."""

    @abstractmethod
    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""

    @abstractmethod
    def _set_busy_timeout(self, milliseconds: int) -> None: ...

    def try_begin(self) -> bool:
        """Begin a write transaction if no other program holds the write lock now."""
        self._set_busy_timeout(0)
        try:
            self.run("BEGIN IMMEDIATE")
        except DriverError:
            return False  # the write thread will meet the same error and report it
        finally:
            self._set_busy_timeout(BUSY_TIMEOUT_MS)
        return True

    def reset(self) -> None:
        """Roll back what an interrupted call left open."""
        self._set_busy_timeout(BUSY_TIMEOUT_MS)
        if self.in_transaction:
            self.run("ROLLBACK")

    def with_time_limit(self, seconds: float | None, work: Callable[[], T]) -> T:
        """Run work that reads; after this time it raises a DriverError of the kind INTERRUPTED."""
        if seconds is None:
            return work()
        end = time.monotonic() + seconds
        self._set_progress_handler(lambda: time.monotonic() > end)
        try:
            return work()
        finally:
            self._set_progress_handler(None)

    @abstractmethod
    def _set_progress_handler(self, stop: Callable[[], bool] | None) -> None: ...

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether a transaction is open; after an error SQLite may have ended it."""

    def was_replaced(self) -> bool:
        """Whether the file was deleted or replaced: writes to this connection would be lost."""
        return identity(self._name) != self._file

    @abstractmethod
    def data_version(self) -> int:
        """A number that changes when another connection commits."""

    def close(self) -> None:
        """Close the connection."""
        try:
            self._close()
        finally:
            LIBRARIES.closed(self)

    @classmethod
    @abstractmethod
    def header(cls, path: Path) -> bytes:
        """The first hundred bytes of a file, read without dropping a lock of this process on it."""

    @abstractmethod
    def _close(self) -> None: ...
