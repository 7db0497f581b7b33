"""The census of a schema: live workers, and what waits. Counted by index, and never more than so many of a kind."""

from collections import Counter

from windlass.store.examination import Census, Waiting
from windlass.store.postgres.db import Db
from windlass.store.postgres.leader import office_holder
from windlass.store.postgres.schedules import all_schedules
from windlass.store.postgres.workers import live_workers

MOST_COUNTED = 20_000
"""Of each queue, of each parked type, of what is delayed: a doctor at the bed of millions must not take long."""
MOST_RUNNERS = 1000


async def take_census(db: Db) -> Census:
    """The caller holds one snapshot for all of it."""
    counts = [await _pending(db), await _not_yet(db), await _parked(db)]
    late = await db.rows("census_late", {"limit": MOST_RUNNERS})
    newest, dead = (await db.rows("census_totals"))[0]
    return Census(
        now=await db.now(),
        newest=newest,
        workers=tuple(await live_workers(db)),
        waiting=tuple(each for waiting, _ in counts for each in waiting),
        counted_all=all(complete for _, complete in counts),
        paused=tuple(row[0] for row in await db.rows("census_paused")),
        dead=dead,
        late_runners=len(late),
        late_jobs=sum(row[1] for row in late),
        coordinator=await office_holder(db),
        schedules=tuple(await all_schedules(db)),
    )


Counted = tuple[list[Waiting], bool]
"""What waits, and whether that is all of it."""


async def _pending(db: Db) -> Counted:
    rows = await db.rows("census_pending", {"limit": MOST_COUNTED})
    of_queues: Counter[str] = Counter()
    for queue, _, jobs in rows:
        of_queues[queue] += jobs
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=True) for queue, type_, jobs in rows]
    return waiting, all(jobs < MOST_COUNTED for jobs in of_queues.values())


async def _not_yet(db: Db) -> Counted:
    """Delayed jobs and retries, those that are due first."""
    rows = await db.rows("census_delayed", {"limit": MOST_COUNTED})
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=due) for queue, type_, due, jobs in rows]
    return waiting, sum(each.jobs for each in waiting) < MOST_COUNTED


async def _parked(db: Db) -> Counted:
    """One count per type, however many there are of the one before."""
    waiting, complete, after = [], True, ""
    while rows := await db.rows("census_parked", {"after": after, "limit": MOST_COUNTED}):
        after = rows[0][0]
        waiting += [
            Waiting(queue=queue, type=type_, jobs=jobs, due=False, parked=True) for type_, queue, jobs in rows
        ]
        complete = complete and sum(row[2] for row in rows) < MOST_COUNTED
    return waiting, complete
