"""Queues with rules, for the minute: a limit, a rate, tenants. The checker is told of them."""

import asyncio
from typing import Any

from tests.torture.yard import Yard
from windlass.core.queue import QueueSettings
from windlass.core.rate import parse_rate
from windlass.store.open import open_store

FEW, SLOW, SHARED = "few", "slow", "shared"
QUEUES = (FEW, SLOW, SHARED, "default")
"""Those with rules first: they must not live on what the others leave."""
MOST = 3
RATE = "10/s burst 5"
WEIGHTS = {"big": 2.0}
CLAIMERS = 4
"""Two workers of two runners; those who come in the place of others begin with an account of their own."""


def lay_down(yard: Yard) -> None:
    """Tell the store, and the checker."""
    asyncio.run(_change(yard, FEW, QueueSettings(max_concurrency=MOST)))
    asyncio.run(_change(yard, SLOW, QueueSettings(rate_limit=parse_rate(RATE, "rate_limit"))))
    asyncio.run(_change(yard, SHARED, QueueSettings(fair=True, weights=WEIGHTS)))
    yard.history.write("rules", queue=FEW, max_concurrency=MOST)
    yard.history.write("rules", queue=SLOW, rate=RATE)
    yard.history.write("rules", queue=SHARED, fair=True, weights=WEIGHTS, claimers=CLAIMERS)


def touched(jobs: list[dict[str, Any]]) -> dict[str, int]:
    """How many jobs ran under rules of each kind: that a law holds says nothing if nobody came near it."""
    ran = [job for job in jobs if job["attempts"]]
    return {
        "keyed": sum(1 for job in ran if job["concurrency_key"]),
        "strict": sum(1 for job in ran if job["key_strict"]),
        "rated": sum(1 for job in ran if job["key_rate"]),
        **{queue: sum(1 for job in ran if job["queue"] == queue) for queue in (FEW, SLOW, SHARED)},
    }


def turn_down(yard: Yard, most: int) -> None:
    """Let fewer run at once than the checker knows of, as an operator may."""
    asyncio.run(_change(yard, FEW, QueueSettings(max_concurrency=most)))


async def _change(yard: Yard, queue: str, settings: QueueSettings) -> None:
    store = open_store(yard.app.store)
    try:
        await store.queues.change(queue, settings)
    finally:
        await store.close()
