"""Queues with rules and schedules, for the minute: a limit, a rate, tenants, ticks. The checker is told of them."""

import asyncio
from typing import Any

from tests.torture.yard import Yard
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.jobs.dependencies import parent_in_reason
from windlass.core.jobs.job import NewJob
from windlass.core.moments import to_micros
from windlass.core.schedules.schedule import Schedule, settings
from windlass.store.open import open_store

FEW, SLOW, SHARED = "few", "slow", "shared"
QUEUES = (FEW, SLOW, SHARED, "long", "default")
"""Those with rules first: they must not live on what the others leave."""
MAX_RUNNING = 3
RATE = "10/s burst 5"
WEIGHTS = {"big": 2.0}
SCHEDULES: dict[str, tuple[NewJob, dict[str, Any]]] = {
    "all": (NewJob(id="", type="quick", payload='{"number":1}', priority=9, max_attempts=1000), {"catch_up": "all"}),
    "alone": (
        NewJob(id="", type="anap", payload='{"seconds":0.2}', priority=9, max_attempts=1000),
        {"overlap": False},
    ),
}
"""Each comes every second."""
CLAIMERS = 4
"""Two workers of two runners; those who come in the place of others begin with an account of their own."""


def lay_down(yard: Yard) -> None:
    """Tell the store, and the checker."""
    asyncio.run(_change(yard, FEW, QueueSettings(max_concurrency=MAX_RUNNING)))
    asyncio.run(_change(yard, SLOW, QueueSettings(rate_limit=parse_rate(RATE, "rate_limit"))))
    asyncio.run(_change(yard, SHARED, QueueSettings(fair=True, weights=WEIGHTS)))
    asyncio.run(_plan(yard))
    yard.history.write("rules", queue=FEW, max_concurrency=MAX_RUNNING)
    yard.history.write("rules", queue=SLOW, rate=RATE)
    yard.history.write("rules", queue=SHARED, fair=True, weights=WEIGHTS, claimers=CLAIMERS)


async def _plan(yard: Yard) -> None:
    store = open_store(yard.app.store)
    try:
        for name, (job, options) in SCHEDULES.items():
            made = await store.schedules.add(name, settings(job, every=1, **options))
            assert made is not None
            yard.history.write("schedule", name=name, **reported(made))
    finally:
        await store.close()


def reported(schedule: Schedule) -> dict[str, Any]:
    """What the checker wants to know of a new one."""
    rules, following = schedule.rules, schedule.next_at
    assert following is not None
    return {
        "cron": None if rules.cron is None else rules.cron.text,
        "every": rules.every,
        "tz": rules.tz,
        "catch_up": rules.catch_up,
        "overlap": rules.overlap,
        "anchor": to_micros(schedule.created_at),
        "next_at": to_micros(following),
    }


def halt(yard: Yard) -> None:
    """No more ticks; where the store says that each schedule is, the checker is told."""
    asyncio.run(_halt(yard))


async def _halt(yard: Yard) -> None:
    store = open_store(yard.app.store)
    try:
        for name in SCHEDULES:
            await store.schedules.pause(name)
        for each in await store.schedules.list():
            assert each.next_at is not None
            facts = {"next_at": to_micros(each.next_at), "missed": each.missed, "skipped": each.skipped}
            # Paused, it may be at a tick that has come: no coordinator has to fire it.
            yard.history.write("final", name=each.name, now=0, **facts)
    finally:
        await store.close()


def touched(jobs: list[dict[str, Any]]) -> dict[str, int]:
    """How many jobs ran under rules of each kind: that a law holds says nothing if no job came near it."""
    ran = [job for job in jobs if job["attempts"]]
    return {
        "keyed": sum(1 for job in ran if job["concurrency_key"]),
        "strict": sum(1 for job in ran if job["key_strict"]),
        "rated": sum(1 for job in ran if job["key_rate"]),
        "links": sum(1 for job in ran if job["parents"]),
        "cancelled": sum(1 for job in jobs if parent_in_reason(job["reason"])),
        **{f"ticks of {name}": sum(1 for job in ran if job["schedule"] == name) for name in SCHEDULES},
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
