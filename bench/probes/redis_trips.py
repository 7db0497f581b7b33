"""Round trips of the Redis driver, counted at its writes: one write is answered together."""

from pathlib import Path
from typing import Any

from redis.asyncio.connection import AbstractConnection

from bench.probes.probe import counter


def count_redis_trips(path: Path) -> None:
    """Count the round trips of every connection opened from now on."""
    count, send = counter(path), AbstractConnection.send_packed_command

    async def counted(self: AbstractConnection, *arguments: Any, **options: Any) -> None:
        count()
        await send(self, *arguments, **options)

    AbstractConnection.send_packed_command = counted  # type: ignore[method-assign]
