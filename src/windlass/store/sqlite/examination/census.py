"""The census of a file: live workers, and what waits. Counted by index, and never more than so many of a kind."""

from collections.abc import Iterator
from itertools import chain

from windlass.store.examination import Census, Waiting
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.leader import office_holder
from windlass.store.sqlite.leases import lapsed
from windlass.store.sqlite.schedules import all_schedules
from windlass.store.sqlite.workers import live_workers

MOST_COUNTED = 20_000
"""Of each queue, of each parked type, of what is delayed: a doctor at the bed of millions must not take long."""
MOST_RUNNERS = 1000


def take_census(db: Db) -> Census:
    """All of it in one snapshot."""
    counts = [*_pending(db), _not_yet(db), *_parked(db)]
    late = {lease[0] for lease in db.rows("leases") if lapsed(db, lease)}
    late |= {row[0] for row in db.rows("orphans", {"limit": MOST_RUNNERS})}
    return Census(
        now=db.now,
        newest=db.rows("newest_moment")[0][0],
        workers=tuple(live_workers(db)),
        waiting=tuple(chain.from_iterable(counts)),
        counted_all=all(sum(each.jobs for each in count) < MOST_COUNTED for count in counts),
        paused=tuple(row[0] for row in db.rows("paused", {"now": db.now})),
        dead=db.rows("count_dead")[0][0],
        late_runners=len(late),
        late_jobs=sum(len(db.rows("held", {"runner": runner})) for runner in late),
        coordinator=office_holder(db),
        schedules=tuple(all_schedules(db)),
    )


def _pending(db: Db) -> Iterator[list[Waiting]]:
    """One count per queue."""
    queue = ""
    while rows := db.rows("next_queue", {"after": queue}):
        queue = rows[0][0]
        found = db.rows("count_pending", {"queue": queue, "limit": MOST_COUNTED})
        yield [Waiting(queue=queue, type=type_, jobs=jobs, due=True) for type_, jobs in found]


def _not_yet(db: Db) -> list[Waiting]:
    """Delayed jobs and retries, those that are due first."""
    found = db.rows("count_delayed", {"now": db.now, "limit": MOST_COUNTED})
    return [Waiting(queue=queue, type=type_, jobs=jobs, due=bool(due)) for queue, type_, due, jobs in found]


def _parked(db: Db) -> Iterator[list[Waiting]]:
    """One count per type."""
    after = ""
    while rows := db.rows("next_parked", {"after": after}):
        after = rows[0][0]
        found = db.rows("count_parked", {"type": after, "limit": MOST_COUNTED})
        yield [Waiting(queue=queue, type=after, jobs=jobs, due=False, parked=True) for queue, jobs in found]
