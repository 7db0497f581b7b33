"""Round trips of the PostgreSQL driver, counted at its transport: each message waits for an answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg.protocol

from bench.probes.probe import counter


class Counted:
    """A transport that counts sent messages; everything else is the wrapped transport's."""

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
    """Count the round trips of every connection opened from now on."""
    count, plain = counter(path), asyncpg.protocol.Protocol

    class Protocol(plain):  # type: ignore[misc, valid-type]
        """The driver's protocol, with a counting transport."""

        def connection_made(self, transport: Any) -> None:
            """Connected."""
            super().connection_made(Counted(transport, count))

    asyncpg.protocol.Protocol = Protocol
