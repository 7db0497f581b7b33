"""The limits of a queue as a claim sees them, and the quotas of its runners."""

import asyncio
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from windlass.core.flow.queue import QueueSettings, merge
from windlass.core.flow.rate import Rate, TokenBucket, full, refilled
from windlass.core.moments import Micros
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.rate_check import rate_of
from windlass.store.waits import RateWaits

TRIES = 8
PAUSE_SECONDS = 0.01
RESERVE = 10
"""A runner gets 1/10 of the free slots if it needs fewer, so that it asks less often."""
_settings = msgspec.json.Decoder(QueueSettings)


class QueueLimits(msgspec.Struct, frozen=True):
    """A row of the statement `queue_limits`."""

    leased: bool | None
    """None: the runner has no lease."""
    again: bool
    max_concurrency: int | None
    rate_limit: str | None
    fair: bool
    rated: bool
    declared: str
    changed: str
    slots: int
    """The quota of the runner."""
    given: int
    """The sum of all runners' quotas."""
    credit: int | None
    period: Micros | None
    at: Micros | None
    returns: int
    sort_priorities: list[int]
    watermarks: list[Micros]
    now: Micros
    marked: bool
    """Whether the queue has dirty keys, so that jobs that wait for keys may be admitted."""
    behind: int
    """The first transaction whose dirty keys this read may not have seen."""
    gone: int
    """How many older claims had no running jobs, and were deleted."""
    buckets: int = 1
    free: bool = True
    """Whether this claim got the lock of the queue; with buckets only."""

    @property
    def rate(self) -> Rate | None:
        """The rate of the queue."""
        return rate_of(self.rate_limit)

    @property
    def plain(self) -> bool:
        """Whether the queue is not limited any more."""
        return self.max_concurrency is None and self.rate_limit is None and not self.fair and not self.rated

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the tenants."""
        return _weights(self.declared, self.changed) if self.fair else {}

    def token_bucket(self, rate: Rate) -> TokenBucket:
        """The queue's token bucket, read without a lock."""
        if self.credit is None or self.period is None or self.at is None:
            return full(rate, self.now)
        return refilled(TokenBucket(self.credit, self.period, self.at), rate, self.now)


@lru_cache(maxsize=1000)
def _weights(declared: str, changed: str) -> dict[str, float]:
    return merge(_settings.decode(declared), _settings.decode(changed)).weights


async def has_work(db: Db, queues: Sequence[str], types: Sequence[str] | None, rate_waits: RateWaits) -> bool:
    """Whether a claim or an admission would find anything, except in queues that are full or without tokens."""
    exhausted = {
        row["name"]
        for row in await db.rows("queue_loads", {"queues": list(queues)})
        if _is_exhausted(row, rate_waits)
    }
    ready = [queue for queue in queues if queue not in exhausted]
    rows = await db.rows("has_work", {"queues": ready, "types": None if types is None else list(types)})
    return bool(rows[0][0])


def _is_exhausted(row: Any, rate_waits: RateWaits) -> bool:
    if rate_waits.is_exhausted(row["name"], row["now"], row["rate_limit"]):
        return True
    if row["max_concurrency"] is not None and row["running"] >= row["max_concurrency"]:
        return True
    rate = rate_of(row["rate_limit"])
    if rate is None or row["credit"] is None:
        return False
    return not refilled(TokenBucket(row["credit"], row["period"], row["at"]), rate, row["now"]).tokens


async def ask_for_slots(access: Access, queue: str, runner: str, slots: int) -> bool:
    """Give a runner this many more slots, or as many as there are; returns whether it got any."""
    for _ in range(TRIES):
        given = await access.write(lambda db: _give(db, queue, runner, slots))
        if given is not None:
            return given > 0
        await asyncio.sleep(PAUSE_SECONDS * random.random())
    return False


async def _give(db: Db, queue: str, runner: str, slots: int) -> int | None:
    """Give a runner slots; returns how many, or None while another process assigns quotas."""
    values = {"queue": queue, "runner": runner}
    locked = await db.rows("lock_limit", values)
    if not locked:
        return None
    await db.run("count_quotas", values)
    free: int = locked[0][0] - (await db.rows("sum_quotas", values))[0][0]
    if free < slots and (holders := [row[0] for row in await db.rows("lock_quotas", values)]):
        free += (await db.rows("trim_quotas", {**values, "runners": holders}))[0][0]
    given = max(0, min(free, max(slots, free // RESERVE)))
    if given:
        await db.run("add_slots", {**values, "slots": given})
    return given


async def drop_quotas(db: Db, runners: Sequence[str]) -> None:
    """Delete the quotas of dead runners whose jobs were put back."""
    await db.run("drop_quotas", {"runners": list(runners)})


async def drop_orphaned_quotas(access: Access) -> None:
    """Delete quotas of dead runners that `drop_quotas` left: a late claim had locked them, or the rescuer died."""
    runners = [row[0] for row in await access.read(lambda db: db.rows("orphan_quotas"))]
    if runners:
        await access.once(lambda db: drop_quotas(db, runners))
