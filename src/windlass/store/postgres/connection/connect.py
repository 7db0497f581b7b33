"""Where the server is, and how a connection to it is opened: settings, detection of a pooler, TCP keepalive."""

import os
import re
import socket
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import asyncpg
import msgspec

from windlass.errors import ConfigError
from windlass.store.postgres.connection.session import CHECK, SETTINGS, Session, socket_of, without_check

MAX_STATEMENT_SIZE = 100_000
CACHED_STATEMENTS = 200
SILENCE_SECONDS = 10
"""A connection that is silent for this long is dead, even if it was not closed."""

READ_SIZE = 16 * 1024
"""Bytes per read, instead of asyncio's 256 KiB. Each read takes a block of that size from the heap, and the part that
is kept leaves a gap: a client at 15 jobs a second grew by 12 MB in 40 minutes. 16 KiB stays flat, 64 KiB does not."""

_ARRAY_OIDS = {"bool": (16, 1000), "int2": (21, 1005), "int4": (23, 1007), "int8": (20, 1016), "uuid": (2950, 2951)}
"""Types and the arrays of them, by the numbers that every server has given them."""
_NO_PARTS = dict.fromkeys(("basetype", "range_subtype", "attrtypoids", "attrnames"))
_ARRAYS = [
    {
        "oid": array,
        "ns": "pg_catalog",
        "name": f"_{name}",
        "kind": b"b",
        "elemtype": oid,
        "elemdelim": ",",
        **_NO_PARTS,
    }
    for name, (oid, array) in _ARRAY_OIDS.items()
]
"""Given to the driver, which would ask each server on each new connection: 3 ms of processor time."""

DEFAULT_SCHEMA = "windlass"
OPTIONS = ("schema", "notify", "connections")
LIBPQ = (
    "gsslib",
    "krbsrvname",
    "passfile",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
)
"""Passed on to the driver, which takes other libpq options for server settings."""
MAX_CONNECTIONS = 50
MAX_SCHEMA_LENGTH = 50
"""PostgreSQL allows 63; the channel of the hints contains the schema's name."""
_SCHEMA = re.compile(rf"[a-z_][a-z0-9_]{{0,{MAX_SCHEMA_LENGTH - 1}}}")


class Address(msgspec.Struct, frozen=True):
    """Where the server is, which schema to use, and how to connect."""

    dsn: str
    """For the driver: with the password, without our options."""
    schema: str = DEFAULT_SCHEMA
    notify: bool = True
    connections: int | None = None

    @property
    def hosts(self) -> list[str]:
        """One address per host."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        if "," not in hosts:
            return [self.dsn]
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]

    @property
    def url(self) -> str:
        """The whole address, for another process."""
        options = {} if self.schema == DEFAULT_SCHEMA else {"schema": self.schema}
        if not self.notify:
            options["notify"] = "off"
        if self.connections is not None:
            options["connections"] = str(self.connections)
        if not options:
            return self.dsn
        return self.dsn + ("&" if "?" in self.dsn else "?") + urlencode(options)


def parse_address(url: str, shown: str) -> Address:
    """The parsed address, or a ConfigError with all problems; `shown` is the address without secrets."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    problems = []
    schema = options.pop("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_") or schema == "information_schema":
        problems.append(
            f"{shown}: schema is up to {MAX_SCHEMA_LENGTH} small letters, digits and underscores, not beginning with "
            "a "
            f"digit or pg_, not {schema!r}"
        )
    notify = options.pop("notify", "on")
    if notify not in ("on", "off"):
        problems.append(f"{shown}: notify is on or off, not {notify!r}")
    connections = options.pop("connections", None)
    if connections is not None and not (connections.isdecimal() and 1 <= int(connections) <= MAX_CONNECTIONS):
        problems.append(f"{shown}: connections is a number from 1 to {MAX_CONNECTIONS}, not {connections!r}")
    if not parts.path.strip("/"):
        problems.append(f"{shown}: names no database; write postgresql://user@host/database")
    if parts.fragment:
        problems.append(f"{shown}: a # in a name or password must be written %23")
    known = ", ".join((*OPTIONS, *LIBPQ))
    problems += [f"{shown}: unknown option {name!r}; there are {known}" for name in options if name not in LIBPQ]
    if problems:
        raise ConfigError(problems)
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
    dsn = f"postgresql://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
    return Address(dsn, schema, notify == "on", None if connections is None else int(connections))


async def connect(dsn: str, seconds: float, *, pooled: bool | None, part: str = "client") -> Session:
    """A new session; `pooled` is None while it is unknown whether there is a pooler.

    `part` and the process id are shown in pg_stat_activity.
    """
    if pooled:
        # Without a name: a pooler would have to set it anew each time it lends a connection.
        return Session(await _connect(dsn, seconds, {}, 0), pooled=True)
    named = {"application_name": f"windlass {part} {os.getpid()}"}
    try:
        connection = await _connect_set(dsn, seconds, {**named, **SETTINGS})
    except asyncpg.PostgresError as error:
        if pooled is None and "startup parameter" in str(error):
            # Only a pooler refuses settings that every server has.
            return await connect(dsn, seconds, pooled=True)
        raise
    session = Session(connection, pooled=False)
    try:
        found = pooled is None and await _is_pooled(connection)
    except BaseException:
        session.give_up()
        raise
    if found:
        session.drop()
        return await connect(dsn, seconds, pooled=True)
    return session


async def _connect_set(dsn: str, seconds: float, settings: dict[str, str]) -> "asyncpg.Connection[Any]":
    """With these settings, without the one that some servers refuse."""
    try:
        return await _connect(dsn, seconds, settings, CACHED_STATEMENTS)
    except asyncpg.InvalidParameterValueError as error:
        if CHECK not in str(error):
            raise
        return await _connect(dsn, seconds, without_check(settings), CACHED_STATEMENTS)


async def _connect(dsn: str, seconds: float, settings: dict[str, str], cached: int) -> "asyncpg.Connection[Any]":
    connection: asyncpg.Connection[Any] = await asyncpg.connect(
        dsn,
        timeout=seconds,
        statement_cache_size=cached,
        max_cached_statement_lifetime=0,
        max_cacheable_statement_size=MAX_STATEMENT_SIZE,
        server_settings=settings,
    )
    _watch_line(socket_of(connection))
    _limit_reads(connection)
    connection._protocol.get_settings().register_data_types(_ARRAYS)
    return connection


def _limit_reads(connection: "asyncpg.Connection[Any]") -> None:
    """Only plain asyncio transports have such a size; uvloop and TLS read into a buffer that they keep."""
    transport: Any = connection._transport
    if hasattr(transport, "max_size"):
        transport.max_size = READ_SIZE


def _watch_line(line: Any) -> None:
    """Have the kernel detect a dead connection. Options that the system lacks are skipped."""
    if line.family == socket.AF_UNIX:
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": SILENCE_SECONDS // 2,
        "TCP_KEEPINTVL": 1,
        "TCP_KEEPCNT": SILENCE_SECONDS // 2,
        "TCP_USER_TIMEOUT": SILENCE_SECONDS * 1000,
    }
    for name, value in wanted.items():
        if (option := getattr(socket, name, None)) is not None:
            line.setsockopt(socket.IPPROTO_TCP, option, value)


async def _is_pooled(connection: "asyncpg.Connection[Any]") -> bool:
    """A pooler reports a process id of its own, not that of the backend."""
    pid = connection.get_server_pid()
    tag: str = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {int(pid)}")
    return tag != "SELECT 1"
