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
    """The connection ended before anything was written to it: nothing was done."""


def as_connection_error(error: Exception) -> Exception:
    """What a loop raises for a closed transport, as the driver's own error; any other error as it is."""
    return Disconnected(f"{CLOSED}: {error}") if isinstance(error, RuntimeError) else error


@contextlib.contextmanager
def connection_errors() -> Iterator[None]:
    """Raise the driver's own error for a closed transport."""
    try:
        yield
    except RuntimeError as error:
        raise as_connection_error(error) from error


async def connect(connection: AbstractConnection) -> None:
    """Connect and greet. What ends the connection before that is done has no effect, and is `Unsent`."""
    try:
        with connection_errors():
            await connection.connect()
    except BaseException as error:
        abort(connection)
        if type(error) is Disconnected:  # its subclasses say what the server has against us
            raise Unsent(*error.args) from error
        raise


async def write(connection: AbstractConnection, words: bytes) -> None:
    """Write to a connection that is open."""
    try:
        await connection.send_packed_command(words, check_health=False)
    except RuntimeError as error:
        raise as_connection_error(error) from error


async def disconnect(connection: AbstractConnection, *, nowait: bool = False) -> None:
    """Close; one that is closed already stays so."""
    with contextlib.suppress(Disconnected), connection_errors():
        await connection.disconnect(nowait=nowait)


def is_closed(connection: AbstractConnection) -> bool:
    """Whether nothing can be written any more; its reader may not know yet."""
    writer = connection._writer
    # The driver would connect anew, and mix up the answers.
    return not connection.is_connected or writer is None or writer.transport.is_closing()


def abort(connection: AbstractConnection) -> None:
    """Close at once, whatever is not written yet."""
    if connection._writer is not None:
        connection._writer.transport.abort()


Word = str | bytes | int | float
_pack: Any = hiredis.pack_command
"""It is declared for one word only."""


def packed(commands: Sequence[tuple[Word, ...]]) -> bytes:
    """All of them, to be written at once."""
    return b"".join([_pack(words) for words in commands])
