"""Round trips of the Redis driver, counted where it sends: what is written at once is answered at once."""

from pathlib import Path
from typing import Any

from redis.asyncio.connection import AbstractConnection

from bench.probes.probe import counter


def count_redis_trips(path: Path) -> None:
    """Count those of every connection from now on."""
    count, send = counter(path), AbstractConnection.send_packed_command

    async def counted(self: AbstractConnection, *arguments: Any, **options: Any) -> None:
        count()
        await send(self, *arguments, **options)

    AbstractConnection.send_packed_command = counted  # type: ignore[method-assign]
