"""admit, age, oldest: due jobs become pending, and jobs that have waited long get a higher priority."""

from collections.abc import Iterator
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.jobs.job import MAX_PRIORITY
from windlass.core.moments import Micros
from windlass.store.records import Admitted
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.key_queue import assign_free_key_slots

BACKFILL_BATCH = 5000
MAX_PRIORITIES = 100
"""Priorities of a queue among which the oldest job is searched."""
MIN_HEAD = 1000
"""Jobs of each priority that ageing reads: those that have waited longest come first."""


def admit(db: Db, limit: int) -> Admitted:
    """Admit the earliest due jobs; their rank is the moment of admission, so they come after the pending ones."""
    values = {"now": db.now, "limit": limit}
    key_queues = [(queue, key) for queue, key in db.rows("due_key_queues", values)]
    jobs = db.run("admit", values)
    assign_free_key_slots(db, key_queues)
    if _is_backfilling(db):
        _assign_tenant_queues(db)
    return Admitted(jobs, next_due_in(db))


def next_due_in(db: Db) -> Micros | None:
    """How long until the next job is due; 0 while jobs of a queue that became fair have no tenant queues yet."""
    if _is_backfilling(db):
        return 0
    rows = db.rows("next_due")
    return max(0, rows[0][0] - db.now) if rows else None


def _is_backfilling(db: Db) -> bool:
    return bool(db.rows("backfilling_queue"))


def _assign_tenant_queues(db: Db) -> None:
    """Give one batch of the jobs of a queue that became fair their tenant queues; without one, a job is claimed last.

    New jobs have a tenant queue from the start and never lose it, so one pass over the ids is enough.
    """
    for queue, after in db.rows("backfilling_queue"):
        rows = db.rows("backfill_end", {"after": after, "jobs": BACKFILL_BATCH})
        until = rows[0][0] if rows else None
        db.run("assign_tenant_queues", {"queue": queue, "after": after, "until": until})
        db.run("set_backfilled_to", {"queue": queue, "until": until})


class Promotion(NamedTuple):
    """Jobs that move to a higher priority."""

    sort_priority: int
    ids: list[JobId]


def is_any_aged(db: Db) -> bool:
    """Whether `age` would find anything; takes no lock."""
    return any(True for queue, ageing in db.rows("ageing") for _ in _promotions(db, queue, ageing, 1))


def age(db: Db, limit: int) -> int:
    """Move up to `limit` jobs to the next higher priority with pending jobs; returns how many."""
    aged = 0
    for queue, ageing in db.rows("ageing"):
        for promotion in _promotions(db, queue, ageing, limit):
            ids = promotion.ids[: limit - aged]
            db.run("raise_priority", {"sort_priority": promotion.sort_priority, "ids": array(ids), "now": db.now})
            aged += len(ids)
            if aged == limit:
                return aged
    return aged


def _promotions(db: Db, queue: str, ageing: Micros, limit: int) -> Iterator[Promotion]:
    """What ageing moves, from the second highest priority downwards, so that no job moves twice. The caller applies
    each promotion before it asks for the next."""
    above: int | None = None
    values = {"queue": queue, "before": db.now - ageing, "limit": max(MIN_HEAD, limit)}
    after = -MAX_PRIORITY - 1
    while rows := db.rows("next_priority", {"queue": queue, "after": after}):
        sort_priority = rows[0][0]
        if above is not None:
            ids = [row[0] for row in db.rows("aged", values | {"sort_priority": sort_priority})]
            if ids:
                yield Promotion(above, ids)
        rest = db.rows("next_priority", {"queue": queue, "after": sort_priority - 1})
        if rest and rest[0][0] == sort_priority:
            above = sort_priority
        after = sort_priority


def oldest(db: Db) -> dict[str, Micros]:
    """How long the oldest pending job of each queue has waited, by the lowest rank of each priority in the index."""
    now, queue = db.now, ""
    waits = {}
    while rows := db.rows("next_queue", {"after": queue}):
        queue = rows[0][0]
        waits[queue] = max(0, now - min(_first_ranks(db, queue)))
    return waits


def _first_ranks(db: Db, queue: str) -> Iterator[Micros]:
    after = -MAX_PRIORITY - 1
    for _ in range(MAX_PRIORITIES):
        if not (rows := db.rows("next_priority", {"queue": queue, "after": after})):
            return
        after, rank = rows[0]
        yield rank
