"""The census of a file: live workers, and what waits. Counted by index, and never more than so many of a kind."""

from collections.abc import Iterator

from windlass.store.examination import Census, Waiting
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.leader import office_holder
from windlass.store.sqlite.leases import lapsed
from windlass.store.sqlite.workers import live_workers

MOST_COUNTED = 20_000
"""Of each queue and each type: a doctor at the bed of millions must not take long."""
MOST_RUNNERS = 1000


def take_census(db: Db) -> Census:
    """All of it in one snapshot."""
    waiting = [*_pending(db), *_not_yet(db), *_parked(db)]
    late = {lease[0] for lease in db.rows("leases") if lapsed(db, lease)}
    late |= {row[0] for row in db.rows("orphans", {"limit": MOST_RUNNERS})}
    return Census(
        now=db.now,
        newest=db.rows("newest_moment")[0][0],
        workers=tuple(live_workers(db)),
        waiting=tuple(waiting),
        counted_all=all(each.jobs < MOST_COUNTED for each in waiting),
        paused=tuple(row[0] for row in db.rows("paused", {"now": db.now})),
        dead=db.rows("count_dead")[0][0],
        late_runners=len(late),
        late_jobs=sum(len(db.rows("held", {"runner": runner})) for runner in late),
        coordinator=office_holder(db),
    )


def _pending(db: Db) -> Iterator[Waiting]:
    queue = ""
    while rows := db.rows("next_queue", {"after": queue}):
        queue = rows[0][0]
        for type_, jobs in db.rows("count_pending", {"queue": queue, "limit": MOST_COUNTED}):
            yield Waiting(queue=queue, type=type_, jobs=jobs, due=True)


def _not_yet(db: Db) -> Iterator[Waiting]:
    """Delayed jobs and retries, those that are due first."""
    for queue, type_, due, jobs in db.rows("count_delayed", {"now": db.now, "limit": MOST_COUNTED}):
        yield Waiting(queue=queue, type=type_, jobs=jobs, due=bool(due))


def _parked(db: Db) -> Iterator[Waiting]:
    after = ""
    while rows := db.rows("next_parked", {"after": after}):
        after = rows[0][0]
        found = db.rows("count_parked", {"type": after, "limit": MOST_COUNTED})
        yield from (Waiting(queue=queue, type=after, jobs=jobs, due=True) for queue, jobs in found)
