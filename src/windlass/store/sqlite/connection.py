"""One connection to the database file, whichever library opens it."""

import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.libraries import LIBRARIES, identity
from windlass.store.sqlite.trouble import DriverError, translate

BUSY_TIMEOUT_MS = 10_000
"""For writers that do not take our turn, such as the sqlite3 shell; ours never wait here."""

CACHED_STATEMENTS = 200

MAGIC = b"SQLite format 3\0"
WAL = 2
"""Bytes 18 and 19 of a file's header, when the database uses a write-ahead log."""

STEPS_BETWEEN_LOOKS = 10_000
"""Of the engine, between two looks at the time where a statement may take only so long: a millisecond or less."""

Values = Mapping[str, Any] | Sequence[Any]
T = TypeVar("T")


class Statements(Protocol):
    """What a verb needs of a connection. Errors of the library are raised as DriverError."""

    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""

    def run(self, text: str, values: Values = ()) -> int:
        """Execute; how many rows it changed."""

    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""


class Connection(ABC):
    """A connection used by one thread at a time. Each library has a subclass of its own."""

    library: ClassVar[str]
    """What is behind it: a file has one library per process."""

    def __init__(self, path: Path, *, synchronous: str, writes: bool) -> None:
        try:
            with LIBRARIES.opening(path, self, self.library):
                self._open(path, create=writes)
            if writes:
                self._prepare(synchronous)
        except DriverError as error:
            with contextlib.suppress(DriverError, AttributeError):  # it may not have come as far as being open
                self.close()
            raise translate(error, path) from error
        self._path = path
        self._file = identity(path)

    @classmethod
    def to_look(cls, path: Path, *, alone: bool) -> Self:
        """A connection that changes nothing; `alone`, when nobody has the file open, it needs no companions."""
        connection = cls.__new__(cls)
        connection._path = path
        try:
            with LIBRARIES.opening(path, connection, cls.library):
                connection._open_to_look(path, alone=alone)
            connection.rows("PRAGMA trusted_schema = 0")
        except DriverError as error:
            raise translate(error, path) from error
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
        # What a statement or a savepoint may have to undo is kept in memory: else every page that they change is
        # first written to a temporary file, which is half of all that a drain writes.
        self.rows("PRAGMA temp_store = MEMORY")
        self.rows("PRAGMA trusted_schema = 0")

    @abstractmethod
    def _open(self, path: Path, *, create: bool) -> None:
        """Open the file, with patience for foreign writers."""

    @abstractmethod
    def _open_to_look(self, path: Path, *, alone: bool) -> None:
        """Open the file for reading only."""

    @abstractmethod
    def rows(self, text: str, values: Values = ()) -> list[Any]:
        """All rows of a statement."""

    @abstractmethod
    def run(self, text: str, values: Values = ()) -> int:
        """Execute; how many rows it changed."""

    @abstractmethod
    def run_many(self, text: str, values: Sequence[Values]) -> None:
        """Execute once per set of values."""

    @abstractmethod
    def _wait_for_writers(self, milliseconds: int) -> None:
        """How long to wait while another program holds the write lock."""

    def try_begin(self) -> bool:
        """Begin a write transaction if no other program holds the write lock now."""
        self._wait_for_writers(0)
        try:
            self.run("BEGIN IMMEDIATE")
        except DriverError:
            return False  # whatever it is, whoever begins in earnest meets it too, and tells of it
        finally:
            self._wait_for_writers(BUSY_TIMEOUT_MS)
        return True

    def tidy(self) -> None:
        """Undo what an interrupt left behind, in a call that was made in the caller's own thread."""
        self._wait_for_writers(BUSY_TIMEOUT_MS)
        if self.in_transaction:
            self.run("ROLLBACK")

    def within(self, seconds: float | None, work: Callable[[], T]) -> T:
        """Do some reading; what takes longer is broken off: an error whose trouble is INTERRUPTED."""
        if seconds is None:
            return work()
        end = time.monotonic() + seconds
        self._ask_between_steps(lambda: time.monotonic() > end)
        try:
            return work()
        finally:
            self._ask_between_steps(None)

    @abstractmethod
    def _ask_between_steps(self, enough: Callable[[], bool] | None) -> None:
        """What may break a statement off."""

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether a transaction is open: the engine may have ended it by itself after an error."""

    def has_moved(self) -> bool:
        """Whether the file was deleted or replaced: what is written here from now on, nobody will ever see."""
        return identity(self._path) != self._file

    @abstractmethod
    def data_version(self) -> int:
        """A number that changes when another connection commits."""

    def close(self) -> None:
        """Close for good."""
        try:
            self._close()
        finally:
            LIBRARIES.closed(self)

    @classmethod
    @abstractmethod
    def header(cls, path: Path) -> bytes:
        """The first hundred bytes of a file, read so that no lock of this process on it is dropped."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of the file."""
