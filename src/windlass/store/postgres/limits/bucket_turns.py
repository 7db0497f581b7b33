"""The order of claims if jobs are in buckets.

A claim locks a row of its queue while other claims wait: so jobs are taken in order from all buckets, one claim at a
time. A loose claim locks some buckets and takes their best jobs: several loose claims run at once, and jobs of
different buckets may be taken out of order. A claim that does not get its lock within a bounded time goes ahead
without it, because the holder may be a process that was stopped.

Jobs are not locked before they are taken, which would cost a round trip to a tablet for each. But then one job that a
caller's transaction has locked would block its queue. So a claim that waited for such a job is repeated as a careful
one, and so are those after it for a while: a careful claim locks each job first, and skips those that are locked.
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
"""How long claims are careful after one that waited for a locked job, or got no answer."""
SPARE = 100
"""A careful claim can skip this many locked jobs."""

Values = dict[str, Any]
Claim = Callable[[Values], Awaitable[list[Any]]]


class BucketTurns:
    """Makes the claims of one process wait for those of others."""

    def __init__(self, server: Server) -> None:
        self.loose = server.address.loose
        self._server = server
        self._careful_until: Micros = 0
        self.waited: Micros = 0
        """How long the last claim waited for other claims."""

    async def take(self, claim: Claim, values: Values) -> list[Any]:
        """Claim in turn; returns the rows. A loose claim that gets too few jobs then locks every free bucket."""
        self.waited = 0
        rows = await self._take(claim, values, wide=not self.loose)
        head, short = _head(rows), values["limit"] - len(rows) + 1
        if self.loose and short > 0 and head["leased"] and not head["again"]:
            more = await self._take(claim, {**values, "limit": short, "first": False}, wide=True)
            rows += [row for row in more if row["id"] is not None]
        return rows

    async def _take(self, claim: Claim, values: Values, *, wide: bool) -> list[Any]:
        """Claim, again while other claims hold the locks; the last try goes ahead without them."""
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
        """Claim once; after a wait for a locked job, again as a careful claim."""
        if (began := since_boot()) >= self._careful_until:
            try:
                return await claim({**values, "careful": False, "window": values["limit"]})
            except StoreUnavailable as error:
                # Careful after no answer too: behind a load balancer, a cancel request may not reach the server.
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
    """The one row that is about the claim, not about a job."""
    return next(row for row in rows if row["id"] is None)


async def pause(attempt: int) -> None:
    """Wait before the next try: longer at each attempt, with jitter."""
    await asyncio.sleep(random.uniform(0, min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * (attempt + 1))))
