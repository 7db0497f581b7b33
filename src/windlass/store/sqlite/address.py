"""sqlite:///jobs.db and its options."""

from enum import StrEnum
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from windlass.errors import ConfigError
from windlass.store.sqlite.connection.apsw_driver import ApswConnection
from windlass.store.sqlite.connection.base import Connection
from windlass.store.sqlite.connection.stdlib_driver import StdlibConnection

DURABILITY = {"full": "FULL", "relaxed": "NORMAL"}
"""`full` flushes every commit to disk; `relaxed` survives the crash of a process, not a power cut."""

OPTIONS = ("durability", "driver", "allow_network_fs")


class Driver(StrEnum):
    """`apsw` brings a current SQLite; `sqlite3` is for processes in which other code opens the file with sqlite3."""

    APSW = "apsw"
    SQLITE3 = "sqlite3"


def connection_class(driver: Driver) -> type[Connection]:
    """The connection class of a driver."""
    return StdlibConnection if driver is Driver.SQLITE3 else ApswConnection


class Address(msgspec.Struct, frozen=True):
    """Where the file is and how it is written."""

    path: Path
    durability: str = "full"
    allow_network_fs: bool = False
    driver: Driver = Driver.APSW

    @property
    def url(self) -> str:
        """The canonical address: an absolute path, and the options that differ from their defaults."""
        options = {"durability": self.durability} if self.durability != "full" else {}
        if self.allow_network_fs:
            options["allow_network_fs"] = "true"
        if self.driver is not Driver.APSW:
            options["driver"] = str(self.driver)
        return f"sqlite:///{quote(str(self.path), errors='surrogateescape')}" + (
            f"?{urlencode(options)}" if options else ""
        )

    @property
    def stdlib_url(self) -> str:
        """The address of the same file with the driver sqlite3."""
        return msgspec.structs.replace(self, driver=Driver.SQLITE3).url


def parse_address(url: str, shown: str | None = None) -> Address:
    """Parse an address; raises ConfigError with every problem at once. `shown` is the address in errors."""
    parts, written, url = urlsplit(url), url, shown or url
    problems = []
    path = unquote(parts.path.removeprefix("/"), errors="surrogateescape")
    if ":memory:" in (parts.netloc, path):
        raise ConfigError(
            f"{url}: no other process sees a database in memory, and its jobs would be lost with this process; "
            "a queue needs a file, such as sqlite:///jobs.db (for tests there is App.testing())"
        )
    if parts.netloc or not written.startswith("sqlite:///"):
        problems.append(f"{url}: write sqlite:///relative.db or sqlite:////absolute/path.db (three or four slashes)")
    if not path or path.endswith("/"):
        problems.append(f"{url}: names no file; workers are separate processes, so a queue needs a file")
    if "\0" in path:
        problems.append(f"{url}: a file's name cannot have a zero byte (%00)")
    if any("\udc80" <= char <= "\udcff" for char in path):
        problems.append(f"{url}: SQLite cannot open a path that is not UTF-8")
    if path.startswith("~"):
        problems.append(f"{url}: ~ is not the home folder here; write the whole path (sqlite:////home/...)")
    if parts.fragment:
        problems.append(f"{url}: a # in a file's name must be written %23")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    durability = options.pop("durability", "full")
    if durability not in DURABILITY:
        problems.append(f"{url}: durability is full or relaxed, not {durability!r}")
    network = options.pop("allow_network_fs", "false")
    if network not in ("true", "false"):
        problems.append(f"{url}: allow_network_fs is true or false, not {network!r}")
    driver = options.pop("driver", Driver.APSW)
    if driver not in set(Driver):
        problems.append(f"{url}: driver is {' or '.join(Driver)}, not {driver!r}")
    problems += [f"{url}: unknown option {name!r}; there are {', '.join(OPTIONS)}" for name in options]
    if problems:
        raise ConfigError(problems)
    return Address(Path(path).absolute(), durability, network == "true", Driver(driver))
