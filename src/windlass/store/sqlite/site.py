"""The site of a database: what its lanes need to know of the place where it lies."""

from pathlib import Path
from typing import Protocol

from windlass.errors import ConfigError, InvalidOption
from windlass.store.sqlite.address import DURABILITY, Address
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.drivers import connections_of
from windlass.store.sqlite.failpoints import WatchedCommits, armed_commits
from windlass.store.sqlite.filesystem import check_local
from windlass.store.sqlite.life import Vouchers
from windlass.store.sqlite.turn import Turn
from windlass.store.sqlite.writer import Turns


class Site(Protocol):
    """Where connections lead to, who else may be there, and how they are told apart from the dead."""

    address: str
    """The address in one spelling, for other processes."""
    path: Path
    """How the database is called in errors."""
    snapshots: bool
    """Whether a connection can read while another writes; if not, both take the same lane."""
    failpoints: WatchedCommits | None
    vouchers: Vouchers
    turn: Turns
    touched: Path
    """A file that our writers touch after each commit; where there is none, commits are looked for."""

    def writer(self) -> Connection:
        """A new connection that makes the database if there is none."""

    def reader(self) -> Connection:
        """A new connection to a database that is there."""

    def check_guests(self) -> None:
        """Raise InvalidOption unless a connection of a caller's can lead here too."""

    def leave(self) -> None:
        """Nobody comes here any more."""


class FileSite:
    """A file that several processes share."""

    snapshots = True

    def __init__(self, address: Address, *, first: bool) -> None:
        """`first` is for supervisors, whose leases must not wait in line."""
        folder = address.path.parent
        if not folder.is_dir():
            raise ConfigError(f"{address.url}: there is no folder {folder}")
        if not address.allow_network_fs:
            check_local(folder)
        self.address = address.url
        self._by_stdlib = address.url_by_stdlib
        self.path = address.path
        self._library = connections_of(address.driver)
        self.failpoints = armed_commits()
        self._place = Turn(address.path, first=first)
        self.vouchers = Vouchers(address.path.with_name(address.path.name + "-live"))
        self.turn: Turns = self._place
        self.touched = self._place.file
        self._synchronous = DURABILITY[address.durability]

    def writer(self) -> Connection:
        """A connection as durable as the address says."""
        connection = self._library(self.path, synchronous=self._synchronous, writes=True)
        return connection if self.failpoints is None else self.failpoints.watched(connection)

    def reader(self) -> Connection:
        """A connection for snapshots."""
        return self._library(self.path, synchronous="FULL", writes=False)

    def check_guests(self) -> None:
        """Callers come through the stdlib's sqlite3: so must we, in the same process."""
        if self._by_stdlib != self.address:
            problem = f"needs a store that is opened through the same library: give the app {self._by_stdlib}"
            raise InvalidOption("connection", problem)

    def leave(self) -> None:
        """End every proof of life and leave the queue of writers."""
        self.vouchers.release_all()
        self._place.close()
