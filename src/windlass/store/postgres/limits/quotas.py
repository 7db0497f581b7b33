"""Quotas: how many jobs of a limited queue a runner may run at once.

The quotas of a queue never add up to more than its limit, and no runner runs more than its quota: so no claim counts
what others run. A claim locks its runner's own quota and uses what that leaves. A runner that wants more asks under
the lock of the queue; unused slots of others are taken then. Each count is a statement of its own, after the lock: an
older snapshot would not show what the last holder did. Nothing waits for a lock here, because its holder may be a
stopped process.
"""

import asyncio
import random
from collections.abc import Sequence

from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db

TRIES = 8
PAUSE_SECONDS = 0.01
RESERVE = 10
"""A runner gets at most 1/10 of what is free beyond what it needs, so that it asks less often."""


async def ask(access: Access, queue: str, runner: str, slots: int) -> bool:
    """Give a runner more slots, or as many as there are; whether it got any."""
    for _ in range(TRIES):
        given = await access.write(lambda db: _give(db, queue, runner, slots))
        if given is not None:
            return given > 0
        await asyncio.sleep(PAUSE_SECONDS * random.random())
    return False


async def _give(db: Db, queue: str, runner: str, slots: int) -> int | None:
    """None: another process assigns quotas at this moment."""
    here = {"queue": queue, "runner": runner}
    locked = await db.rows("lock_limit", here)
    if not locked:
        return None
    await db.run("count_quotas", here)
    free: int = locked[0][0] - (await db.rows("sum_quotas", here))[0][0]
    if free < slots and (holders := [row[0] for row in await db.rows("lock_quotas", here)]):
        free += (await db.rows("trim_quotas", {**here, "runners": holders}))[0][0]
    given = max(0, min(free, max(slots, free // RESERVE)))
    if given:
        await db.run("add_slots", {**here, "slots": given})
    return given


async def forget(db: Db, runners: Sequence[str]) -> None:
    """Delete the quotas of dead runners whose jobs are put back."""
    await db.run("drop_quotas", {"runners": list(runners)})


async def forget_orphans(access: Access) -> None:
    """Delete quotas that were locked by a late claim, or whose rescuer died."""
    runners = [row[0] for row in await access.read(lambda db: db.rows("orphan_quotas"))]
    if runners:
        await access.once(lambda db: forget(db, runners))
