"""Shares: so many jobs of a limited queue a runner may run at once.

All shares of a queue together are never more than its limit, and no runner runs more than its share: so no claim need
count what others run. A claim locks the runner's own share and takes what that leaves. A runner that wants more asks
for it under the lock of the queue; what others have and do not use is taken from them then. Each count is a statement
of its own, after the lock: one that began before would not see what the last holder did. Nobody waits for a lock
here, because whoever has it may be a process that was stopped.
"""

import asyncio
import random
from collections.abc import Sequence

from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db

TRIES = 8
PAUSE_SECONDS = 0.01
RESERVE = 10
"""Of so many parts of what is free a runner is given one at most beyond what it needs: it need not ask so soon."""


async def ask(access: Access, queue: str, runner: str, slots: int) -> bool:
    """Let a runner have so many more slots of a queue, or as many as there are: whether it got any."""
    for _ in range(TRIES):
        given = await access.write(lambda db: _give(db, queue, runner, slots))
        if given is not None:
            return given > 0
        await asyncio.sleep(PAUSE_SECONDS * random.random())
    return False


async def _give(db: Db, queue: str, runner: str, slots: int) -> int | None:
    """None: somebody else is sharing out at this moment."""
    here = {"queue": queue, "runner": runner}
    locked = await db.rows("lock_limit", here)
    if not locked:
        return None
    await db.run("count_shares", here)
    free: int = locked[0][0] - (await db.rows("sum_shares", here))[0][0]
    if free < slots and (holders := [row[0] for row in await db.rows("lock_shares", here)]):
        free += (await db.rows("trim_shares", {**here, "runners": holders}))[0][0]
    given = max(0, min(free, max(slots, free // RESERVE)))
    if given:
        await db.run("add_slots", {**here, "slots": given})
    return given


async def forget(db: Db, runners: Sequence[str]) -> None:
    """These runners are gone, and their jobs are put back: others may have what they had."""
    await db.run("drop_shares", {"runners": list(runners)})


async def forget_orphans(access: Access) -> None:
    """What was left behind because a late claim had it in hand, or whoever was to drop it died."""
    runners = [row[0] for row in await access.read(lambda db: db.rows("orphan_shares"))]
    if runners:
        await access.once(lambda db: forget(db, runners))
