"""The database of a store: a file that processes share, or, for tests, memory of this process."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import apsw

from windlass.errors import ConfigError, InvalidOption, StoreUnavailable
from windlass.store.failpoints import ACTIONS, Failpoints, armed
from windlass.store.sqlite.address import DURABILITY, Address, connection_class
from windlass.store.sqlite.connection.apsw_driver import ApswConnection
from windlass.store.sqlite.connection.base import CACHED_STATEMENTS, Connection, DriverError, ErrorKind, Values
from windlass.store.sqlite.connection.files import check_local, companion, real_path, second_name
from windlass.store.sqlite.connection.libraries import identity
from windlass.store.sqlite.connection.write_thread import WriteOrder
from windlass.store.sqlite.connection.write_turn import WriteTurn
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks, MemoryLivenessLocks

T = TypeVar("T")


class Database(Protocol):
    """The database, as its threads use it."""

    address: str
    """The canonical address, for other processes."""
    path: Path
    """The file, as errors name it."""
    snapshots: bool
    """Whether a read can run beside a write; if not, reads go through the write thread."""
    failpoints: "CommitFailpoints | None"
    liveness_locks: LivenessLocks
    turn: WriteOrder
    touched: Path
    """A file that Windlass's writers read after each commit; if it does not exist, watchers poll for commits."""

    def writer(self) -> Connection:
        """A new connection; it creates the database if there is none."""

    def reader(self) -> Connection:
        """A new connection to an existing database."""

    def check_caller_transactions(self) -> None:
        """Raise InvalidOption unless a caller can have a connection to this database."""

    def close(self) -> None:
        """Release the locks."""


class FileDatabase:
    """A file that several processes share."""

    snapshots = True

    def __init__(self, address: Address, *, first: bool) -> None:
        """`first` lets a supervisor write before others, so that its leases are renewed in time."""
        path = real_path(address.path)
        folder = path.parent
        # Check the path as written too: realpath drops a missing folder before `..`, but the system does not.
        for each in (address.path.parent, folder):
            if not each.is_dir():
                raise ConfigError(f"{address.url}: there is no folder {each}")
        if not address.allow_network_fs:
            check_local(folder)
        self._checked = identity(path)
        if refusal := second_name(path):
            raise ConfigError(str(refusal))
        self.address = address.url
        self._stdlib_url = address.stdlib_url
        self._name = address.path
        self.path = path
        self._library = connection_class(address.driver)
        self.failpoints = _armed_failpoints()
        self._write_turn = WriteTurn(path, first=first)
        self.liveness_locks = LivenessLocks(companion(path, "-live"))
        self.turn: WriteOrder = self._write_turn
        self.touched = self._write_turn.file
        self._synchronous = DURABILITY[address.durability]

    def writer(self) -> Connection:
        """A connection with the durability that the address asks for."""
        self._check_name()
        connection = self._library(self.path, name=self._name, synchronous=self._synchronous, writes=True)
        self._checked = self._checked or identity(self.path)
        return connection if self.failpoints is None else self.failpoints.watched(connection)

    def reader(self) -> Connection:
        """A connection for snapshots."""
        self._check_name()
        return self._library(self.path, name=self._name, synchronous="FULL", writes=False)

    def check_caller_transactions(self) -> None:
        """Refuse unless this process opens the file with the stdlib's sqlite3, as callers do."""
        if self._stdlib_url != self.address:
            problem = f"needs a store that is opened through the same library: give the app {self._stdlib_url}"
            raise InvalidOption("connection", problem)

    def _check_name(self) -> None:
        """Refuse a name that now leads to another file: the locks of this process are beside the first one."""
        if (now := real_path(self._name)) != self.path:
            raise StoreUnavailable(
                f"{self._name} leads to {now} now, and this process uses {self.path}: restart the process"
            )
        # Once per file: a second name that is added later does no harm, because opening a store by it is refused.
        if (file := identity(self.path)) != self._checked:
            if refusal := second_name(self.path):
                raise StoreUnavailable(str(refusal))
            self._checked = file

    def close(self) -> None:
        """Release the liveness locks and close the files of the write turn."""
        self.liveness_locks.release_all()
        self._write_turn.close()


class MemoryDatabase:
    """A new, empty database that only this process sees, with the same tables and statements.

    SQLite's memdb shares a database by name among the connections of a process, and drops it with the last of them.
    It has no write-ahead log, so a reader would block a writer: reads go through the write thread.
    """

    address = "sqlite:///:memory:"  # MEMORY_ADDRESS of store/open.py, which imports this module
    snapshots = False
    failpoints: "CommitFailpoints | None" = None

    def __init__(self) -> None:
        self.path = self.touched = Path(f"in-memory-{secrets.token_hex(6)}")
        self.liveness_locks: LivenessLocks = MemoryLivenessLocks(self.path)
        self.turn: WriteOrder = _NoWriteTurn()

    def writer(self) -> Connection:
        """The connection of the write thread."""
        return _MemoryConnection(self.path, synchronous="OFF", writes=True)

    def reader(self) -> Connection:
        """A connection that sees what the write thread has committed."""
        return _MemoryConnection(self.path, synchronous="OFF", writes=False)

    def check_caller_transactions(self) -> None:
        """Always refused: no other connection reaches this database."""
        raise InvalidOption("connection", "cannot reach a store in memory")

    def close(self) -> None:
        """No-op."""


class _NoWriteTurn:
    """Always free: no other process writes here."""

    def take(self) -> None: ...

    def try_take(self) -> bool:
        return True

    def leave(self) -> None: ...


class _MemoryConnection(ApswConnection):
    def _connect(self, path: Path, flags: int) -> apsw.Connection:
        flags |= apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:/{path}?vfs=memdb", flags=flags, statementcachesize=CACHED_STATEMENTS)

    def _prepare(self, synchronous: str) -> None:
        """No-op: the settings concern the disk."""

    def was_replaced(self) -> bool:
        return False


def _armed_failpoints() -> "CommitFailpoints | None":
    points = armed(lambda message: DriverError(message, ErrorKind.IO))
    return None if points is None else CommitFailpoints(points)


class CommitFailpoints:
    """Failpoints around the commits of one database; knows the verbs that the open transaction has run."""

    def __init__(self, points: Failpoints) -> None:
        self._points = points
        self._verb = points.verb
        self.named = points.named
        self._verbs: list[str] = []

    def noted(self, work: Callable[[Db], T]) -> Callable[[Db], T]:
        """The same work, which also records its caller's verb for the commit."""
        name = self._verb.get("open")

        def run(db: Db) -> T:
            answer = work(db)
            self._points.reach(f"{name}.before_commit", "raise")
            self._verbs.append(name)
            return answer

        return run

    def watched(self, connection: Connection) -> Connection:
        """The same connection, with failpoints around its commits."""
        run = connection.run

        def watched(text: str, values: Values = ()) -> int:
            if text == "COMMIT":
                return self._commit(lambda: run(text, values))
            if text == "BEGIN IMMEDIATE":
                self._verbs = []
            return run(text, values)

        connection.run = watched  # type: ignore[method-assign]
        return connection

    def _commit(self, commit: Callable[[], int]) -> int:
        """Commit, with the failpoints of each verb; a commit without a verb is a migration."""
        verbs, self._verbs = self._verbs or ["migrate"], []
        for verb in verbs:
            self._points.reach(f"{verb}.before_commit", "kill", "cut")
        done = commit()
        for verb in verbs:
            self._points.reach(f"{verb}.after_commit", *ACTIONS)
        return done
