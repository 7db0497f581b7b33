"""Opens connections: settings, detection of a pooler, TCP keepalive."""

import os
import socket
from typing import Any

import asyncpg

from windlass.store.postgres.connection.profile import PLAIN, Profile
from windlass.store.postgres.connection.session import CHECK, SETTINGS, Session, socket_of, without_check

MAX_STATEMENT_SIZE = 100_000
CACHED_STATEMENTS = 200
SILENCE_SECONDS = 10
"""A connection that is silent for this long is dead, even if it was not closed."""

READ_SIZE = 16 * 1024
"""Bytes per read, instead of asyncio's 256 KiB. Each read allocates a block of that size, and what is kept of it
fragments the heap: at 15 jobs a second, a client grew by 12 MB in 40 minutes. It does not with 16 KiB; with 64 KiB it
does."""

_ARRAY_OIDS = {"bool": (16, 1000), "int2": (21, 1005), "int4": (23, 1007), "int8": (20, 1016), "uuid": (2950, 2951)}
"""The OIDs of types and of their arrays, which are the same on every server."""
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
"""For the driver, which would otherwise ask the server on each new connection, for 3 ms of processor time."""


async def connect(
    dsn: str, seconds: float, *, pooled: bool | None, part: str = "client", profile: Profile = PLAIN
) -> Session:
    """Open a session; `pooled` is None while it is unknown whether there is a pooler.

    `part` and the process id are shown in pg_stat_activity.
    """
    settings = {**SETTINGS, **profile.settings}
    if pooled:
        # Without an application_name, which a pooler would have to set each time it lends a connection.
        return Session(await _connect(dsn, seconds, {}, 0), pooled=True, settings=settings)
    named = {"application_name": f"windlass {part} {os.getpid()}"}
    try:
        connection = await _connect_set(dsn, seconds, {**named, **settings})
    except asyncpg.PostgresError as error:
        if pooled is None and "startup parameter" in str(error):
            # Every server has these settings: only a pooler refuses them.
            return await connect(dsn, seconds, pooled=True, profile=profile)
        raise
    session = Session(connection, pooled=False, settings=settings)
    try:
        found = pooled is None and await _is_pooled(connection)
    except BaseException:
        await session.close()
        raise
    if found:
        session.drop()
        return await connect(dsn, seconds, pooled=True, profile=profile)
    return session


async def _connect_set(dsn: str, seconds: float, settings: dict[str, str]) -> "asyncpg.Connection[Any]":
    """Connect with these settings; if the server refuses the one that some servers refuse, connect without it."""
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
    _enable_keepalive(socket_of(connection))
    _limit_reads(connection)
    connection._protocol.get_settings().register_data_types(_ARRAYS)
    return connection


def _limit_reads(connection: "asyncpg.Connection[Any]") -> None:
    """Set READ_SIZE on plain asyncio transports; uvloop and TLS reuse one buffer for all reads."""
    transport: Any = connection._transport
    if hasattr(transport, "max_size"):
        transport.max_size = READ_SIZE


def _enable_keepalive(open_socket: Any) -> None:
    """Let the kernel detect a dead connection. Options that the system lacks are skipped."""
    if open_socket.family == socket.AF_UNIX:
        return
    open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": SILENCE_SECONDS // 2,
        "TCP_KEEPINTVL": 1,
        "TCP_KEEPCNT": SILENCE_SECONDS // 2,
        "TCP_USER_TIMEOUT": SILENCE_SECONDS * 1000,
    }
    for name, value in wanted.items():
        if (option := getattr(socket, name, None)) is not None:
            open_socket.setsockopt(socket.IPPROTO_TCP, option, value)


async def _is_pooled(connection: "asyncpg.Connection[Any]") -> bool:
    """Whether the reported process id is not the backend's, and so a pooler's."""
    pid = connection.get_server_pid()
    tag: str = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {int(pid)}")
    return tag != "SELECT 1"
