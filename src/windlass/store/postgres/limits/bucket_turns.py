"""Turns of claims where jobs are in buckets.

A claim locks a row of its queue, so that it takes the best jobs of all buckets while others wait: jobs are taken in
their order, one claim at a time. A loose claim locks some buckets, and takes the best of those: several run at once,
and jobs of different buckets may be taken out of order. Without its lock after a bounded time, a claim goes ahead all
the same: the holder may be a process that was stopped.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from windlass.store.postgres.connection.access import Server

ALL_BUCKETS = -1
MAX_TURNS = 25
PAUSE_SECONDS = 0.001
MAX_PAUSE_SECONDS = 0.02
PARALLEL = 4
"""A loose claim locks 1/4 of the buckets."""

Turn = dict[str, Any]


class BucketTurns:
    """The turns of one process."""

    def __init__(self, server: Server) -> None:
        self.loose = server.address.loose
        self._server = server

    async def take(self, claim: Callable[[Turn], Awaitable[list[Any]]]) -> list[Any]:
        """The rows of a claim that had its turn."""
        rows: list[Any] = []
        for attempt in range(MAX_TURNS + 1):
            rows = await claim(self._turn(attempt))
            head = next(row for row in rows if row["id"] is None)
            self._server.texts.buckets = head["buckets"]
            if not head["contended"]:
                break
            self._server.conflicts.lock_waits += 1
            await pause(attempt)
        return rows

    def _turn(self, attempt: int) -> Turn:
        buckets = self._server.texts.buckets
        # A loose claim that met others asks for every free bucket.
        some = max(1, buckets // PARALLEL) if attempt == 0 else buckets
        return {
            "loose": self.loose,
            "width": some if self.loose else 1,
            "turn": random.randrange(buckets),
            "known_buckets": buckets,
            "forced": attempt == MAX_TURNS,
        }


async def pause(attempt: int) -> None:
    """A moment, longer at each attempt, with jitter."""
    await asyncio.sleep(random.uniform(0, min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * (attempt + 1))))
