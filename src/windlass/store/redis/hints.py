"""Hints: who waits is told that there is work."""

import asyncio
from collections.abc import Sequence

from windlass.store.redis.access import Server


class Hints:
    """What this process hears."""

    silence: str | None = None

    def __init__(self, server: Server) -> None:
        self._server = server
        self._heard = 0

    def attend(self, queues: Sequence[str]) -> None:
        """Hear of these queues only."""

    def hear(self) -> None:
        """Something was said."""
        self._heard += 1

    def mark(self) -> int:
        """How often anything was heard."""
        return self._heard

    async def wait(self, mark: int, seconds: float) -> bool:
        """Until anything is heard."""
        await asyncio.sleep(min(seconds, 0.05))
        return True

    async def close(self) -> None:
        """Hear no more."""
