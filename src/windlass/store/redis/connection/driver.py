"""Connections of the driver on an event loop: whatever ends one is an error of the driver, on every kind of loop.

A transport may be closed before its reader learns of it. asyncio drops what is written then, and raises later;
uvloop raises RuntimeError at once, which the driver passes on.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as Disconnected

CLOSED = "the connection was closed"


class Unsent(Disconnected):
    """The connection ended before anything was written: nothing was done."""


def as_connection_error(error: Exception) -> Exception:
    """The error of an event loop for a closed transport, as the driver's own; any other error unchanged."""
    return Disconnected(f"{CLOSED}: {error}") if isinstance(error, RuntimeError) else error


@contextlib.contextmanager
def connection_errors() -> Iterator[None]:
    """Raise the driver's own error for a closed transport."""
    try:
        yield
    except RuntimeError as error:
        raise as_connection_error(error) from error


async def connect(connection: AbstractConnection) -> None:
    """Connect and greet. An error before that is done is `Unsent`, since nothing was executed."""
    try:
        with connection_errors():
            await connection.connect()
    except BaseException as error:
        abort(connection)
        if type(error) is Disconnected:  # its subclasses are refusals of the server
            raise Unsent(*error.args) from error
        raise


async def write(connection: AbstractConnection, words: bytes) -> None:
    """Write to a connection that is open."""
    try:
        await connection.send_packed_command(words, check_health=False)
    except RuntimeError as error:
        raise as_connection_error(error) from error


async def disconnect(connection: AbstractConnection, *, nowait: bool = False) -> None:
    """Close the connection; no-op if it is closed."""
    with contextlib.suppress(Disconnected), connection_errors():
        await connection.disconnect(nowait=nowait)


def is_closed(connection: AbstractConnection) -> bool:
    """Whether nothing can be written any more; its reader may not know yet."""
    writer = connection._writer
    # The driver would reconnect, and replies would go to the wrong requests.
    return not connection.is_connected or writer is None or writer.transport.is_closing()


def abort(connection: AbstractConnection) -> None:
    """Close the connection and discard what is buffered."""
    if connection._writer is not None:
        connection._writer.transport.abort()


Word = str | bytes | int | float
_pack: Any = hiredis.pack_command
"""hiredis declares it for one word only."""


def packed(commands: Sequence[tuple[Word, ...]]) -> bytes:
    """The bytes of all commands, for one write."""
    return b"".join([_pack(words) for words in commands])
