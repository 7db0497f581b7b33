"""The libraries that can open the file."""

from enum import StrEnum

from windlass.store.sqlite.by_apsw import ApswConnection
from windlass.store.sqlite.by_stdlib import StdlibConnection
from windlass.store.sqlite.connection import Connection


class Driver(StrEnum):
    """`apsw` brings a current SQLite. `sqlite3` is the stdlib's: for processes whose other code opens the file so."""

    APSW = "apsw"
    SQLITE3 = "sqlite3"


def connections_of(driver: Driver) -> type[Connection]:
    """The connections of a driver."""
    return StdlibConnection if driver is Driver.SQLITE3 else ApswConnection
