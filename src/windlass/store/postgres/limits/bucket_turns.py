"""Turns of claims where jobs are in buckets.

A claim locks a row of its queue, so that it takes the best jobs of all buckets while others wait: jobs are taken in
their order, one claim at a time. A loose claim locks some buckets, and takes the best of those: several run at once,
and jobs of different buckets may be taken out of order. Without its lock after a bounded time, a claim goes ahead all
the same: the holder may be a process that was stopped.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from windlass.store.postgres.connection.access import Server

ALL_BUCKETS = -1
MAX_TURNS = 25
PAUSE_SECONDS = 0.001
MAX_PAUSE_SECONDS = 0.02
PARALLEL = 4
"""A loose claim locks 1/4 of the buckets."""

Values = dict[str, Any]
Claim = Callable[[Values], Awaitable[list[Any]]]


class BucketTurns:
    """The turns of one process."""

    def __init__(self, server: Server) -> None:
        self.loose = server.address.loose
        self._server = server

    async def take(self, claim: Claim, values: Values) -> list[Any]:
        """The rows of a claim that had its turn; a loose one that comes short asks for every free bucket."""
        rows = await self._take(claim, values, wide=not self.loose)
        head, short = _head(rows), values["limit"] - len(rows) + 1
        if self.loose and short > 0 and head["leased"] and not head["again"]:
            more = await self._take(claim, {**values, "limit": short, "first": False}, wide=True)
            rows += [row for row in more if row["id"] is not None]
        return rows

    async def _take(self, claim: Claim, values: Values, *, wide: bool) -> list[Any]:
        """Until no other claim is in its way; the last time it goes ahead all the same."""
        rows: list[Any] = []
        for attempt in range(MAX_TURNS + 1):
            turn = self._turn(wide=wide or attempt > 0, forced=attempt == MAX_TURNS)
            rows = await claim({**values, **turn})
            head = _head(rows)
            self._server.texts.buckets = head["buckets"]
            if not head["contended"]:
                break
            self._server.conflicts.lock_waits += 1
            await pause(attempt)
        return rows

    def _turn(self, *, wide: bool, forced: bool) -> Values:
        buckets = self._server.texts.buckets
        return {
            "loose": self.loose,
            "width": 1 if not self.loose else buckets if wide else max(1, buckets // PARALLEL),
            "turn": random.randrange(buckets),
            "known_buckets": buckets,
            "forced": forced,
        }


def _head(rows: Sequence[Any]) -> Any:
    """The row about the claim."""
    return next(row for row in rows if row["id"] is None)


async def pause(attempt: int) -> None:
    """A moment, longer at each attempt, with jitter."""
    await asyncio.sleep(random.uniform(0, min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * (attempt + 1))))
