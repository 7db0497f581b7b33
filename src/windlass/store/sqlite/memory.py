"""A database in the memory of this process, for tests: the same tables and statements, no file, no other process.

SQLite's memdb lets several connections of a process see one database by its name, which is gone with the last of
them. It has no write-ahead log, so a reader would stop a writer: reads take the writer's lane.
"""

import secrets
from pathlib import Path

import apsw

from windlass.errors import InvalidOption
from windlass.store.open import MEMORY_ADDRESS
from windlass.store.sqlite.by_apsw import ApswConnection
from windlass.store.sqlite.connection import CACHED_STATEMENTS, Connection
from windlass.store.sqlite.failpoints import WatchedCommits
from windlass.store.sqlite.life import Vouchers
from windlass.store.sqlite.writer import Turns


class MemorySite:
    """A new and empty database that only this process can see."""

    address = MEMORY_ADDRESS
    snapshots = False
    failpoints: WatchedCommits | None = None

    def __init__(self) -> None:
        self.path = self.touched = Path(f"in-memory-{secrets.token_hex(6)}")
        self.vouchers: Vouchers = OwnVouchers(self.path)
        self.turn: Turns = NoTurn()

    def writer(self) -> Connection:
        """The connection of the one lane."""
        return MemoryConnection(self.path, synchronous="OFF", writes=True)

    def reader(self) -> Connection:
        """A connection that sees when the lane has committed."""
        return MemoryConnection(self.path, synchronous="OFF", writes=False)

    def check_guests(self) -> None:
        """No connection of a caller's leads here."""
        raise InvalidOption("connection", "leads to no store in memory")

    def leave(self) -> None:
        """Nothing is left behind."""


class NoTurn:
    """Nobody else writes here: it is always our turn."""

    def take(self) -> None:
        """Nobody to wait for."""

    def try_take(self) -> bool:
        """Always."""
        return True

    def leave(self) -> None:
        """Nobody to pass it on to."""


class MemoryConnection(ApswConnection):
    """A connection to a database by its name in this process."""

    def _connect(self, path: Path, flags: int) -> apsw.Connection:
        flags |= apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:/{path}?vfs=memdb", flags=flags, statementcachesize=CACHED_STATEMENTS)

    def _prepare(self, synchronous: str) -> None:
        """Nothing to prepare: there is no disk."""

    def has_moved(self) -> bool:
        """There is no file that could."""
        return False


class OwnVouchers(Vouchers):
    """Proofs of life where everybody lives in this process: whoever vouched is alive until it says otherwise."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._vouched: set[str] = set()

    def take(self, holder: str) -> None:
        """From now on it is alive."""
        self._vouched.add(holder)

    def release(self, holder: str) -> None:
        """From now on only time tells."""
        self._vouched.discard(holder)

    def alive(self, holder: str) -> bool | None:
        """True, or None if nobody vouches."""
        return True if holder in self._vouched else None

    def clear(self, holder: str) -> None:
        """There is no file to remove."""
