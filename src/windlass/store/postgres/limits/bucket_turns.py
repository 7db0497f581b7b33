"""Turns of claims where jobs are in buckets.

A claim locks a row of its queue, so that it takes the best jobs of all buckets while others wait: jobs are taken in
their order, one claim at a time. A loose claim locks some buckets, and takes the best of those: several run at once,
and jobs of different buckets may be taken out of order. Without its lock after a bounded time, a claim goes ahead all
the same: the holder may be a process that was stopped.

Jobs are not locked before they are taken: that would be a round trip to a tablet for each. A job that a caller's
transaction holds would stop its queue, so a claim that waited for one is repeated with care, and those after it are
careful for a while: they lock each job that they take, and pass over those that are held.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.server import Server
from windlass.store.records import RowsHeld

ALL_BUCKETS = -1
MAX_TURNS = 25
PAUSE_SECONDS = 0.001
MAX_PAUSE_SECONDS = 0.02
PARALLEL = 4
"""A loose claim locks 1/4 of the buckets."""
CAREFUL: Micros = 30 * SECOND
"""How long claims lock each job, after one that waited for a job or got no answer."""
SPARE = 100
"""How many held jobs a careful claim passes over."""

Values = dict[str, Any]
Claim = Callable[[Values], Awaitable[list[Any]]]


class BucketTurns:
    """The turns of one process."""

    def __init__(self, server: Server) -> None:
        self.loose = server.address.loose
        self._server = server
        self._careful_until: Micros = 0
        self.waited: Micros = 0
        """How long the last claim waited for others."""

    async def take(self, claim: Claim, values: Values) -> list[Any]:
        """The rows of a claim that had its turn; a loose one that comes short asks for every free bucket."""
        self.waited = 0
        rows = await self._take(claim, values, wide=not self.loose)
        head, short = _head(rows), values["limit"] - len(rows) + 1
        if self.loose and short > 0 and head["leased"] and not head["again"]:
            more = await self._take(claim, {**values, "limit": short, "first": False}, wide=True)
            rows += [row for row in more if row["id"] is not None]
        return rows

    async def _take(self, claim: Claim, values: Values, *, wide: bool) -> list[Any]:
        """Claim until no other claim is in the way; the last try goes ahead in any case."""
        rows: list[Any] = []
        for attempt in range(MAX_TURNS + 1):
            began, waited = since_boot(), self.waited
            turn = self._turn(wide=wide or attempt > 0, forced=attempt == MAX_TURNS)
            rows = await self._claim(claim, {**values, **turn})
            head = _head(rows)
            self._server.texts.buckets = head["buckets"]
            if not head["contended"]:
                break
            self._server.conflicts.lock_waits += 1
            await pause(attempt)
            self.waited = waited + since_boot() - began
        return rows

    async def _claim(self, claim: Claim, values: Values) -> list[Any]:
        """Passes over jobs that a transaction holds, once one was in the way."""
        if (began := since_boot()) >= self._careful_until:
            try:
                return await claim({**values, "careful": False, "window": values["limit"]})
            except StoreUnavailable as error:
                # Without an answer too: a cancel request may not reach the server, as behind a load balancer.
                failed = since_boot()
                self._careful_until = failed + CAREFUL
                if not isinstance(error, RowsHeld):
                    raise
                self.waited += failed - began
        return await claim({**values, "careful": True, "window": values["limit"] + SPARE})

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
