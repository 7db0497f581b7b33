"""Round trips of the PostgreSQL driver, counted where it sends: a message is a wait for an answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg.protocol

from bench.probes.probe import counter


class Counted:
    """A connection's transport that counts what is sent; all else is the transport's."""

    def __init__(self, transport: Any, count: Callable[[], None]) -> None:
        self._transport = transport
        self._count = count

    def write(self, data: bytes) -> None:
        """Send."""
        self._count()
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def count_trips(path: Path) -> None:
    """Count those of every connection made from now on."""
    count, plain = counter(path), asyncpg.protocol.Protocol

    class Protocol(plain):  # type: ignore[misc, valid-type]
        """The driver's, with a transport that counts."""

        def connection_made(self, transport: Any) -> None:
            """Connected."""
            super().connection_made(Counted(transport, count))

    asyncpg.protocol.Protocol = Protocol
