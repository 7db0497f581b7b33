"""record, recent, oldest: statistics, kept added up so that reading them never walks the jobs."""

from collections.abc import Iterator, Sequence

from windlass.core.job import HIGHEST_PRIORITY
from windlass.core.meter import Meter, Recent, slot_of
from windlass.core.moments import Micros
from windlass.store.meters import meter_values, to_meter
from windlass.store.sqlite.db import Db

MOST_PRIORITIES = 100
"""In how many priorities of a queue the oldest job is looked for."""


def record(db: Db, meters: Sequence[Meter]) -> None:
    """Add to the slot of this moment."""
    slot = slot_of(db.now)
    for each in meters:
        there = db.rows("meter", {"slot": slot, "queue": each.queue, "type": each.type})
        db.run("set_meter", meter_values(slot, each.add(to_meter(there[0])) if there else each))


def recent(db: Db, length: Micros) -> Recent:
    """One range of the primary key."""
    now = db.now
    rows = db.rows("meters", {"since": slot_of(now - length)})
    return Recent(now, tuple(to_meter(row) for row in rows))


def oldest(db: Db) -> dict[str, Micros]:
    """A rank is the moment from which a job waits, and the index has the lowest rank of each priority first."""
    now = db.now
    return {queue: max(0, now - min(_heads(db, queue))) for queue in _queues(db)}


def _queues(db: Db) -> Iterator[str]:
    after = ""
    while rows := db.rows("next_queue", {"after": after}):
        after = rows[0][0]
        yield after


def _heads(db: Db, queue: str) -> Iterator[Micros]:
    after = -HIGHEST_PRIORITY - 1
    for _ in range(MOST_PRIORITIES):
        if not (rows := db.rows("next_head", {"queue": queue, "after": after})):
            return
        after, rank = rows[0]
        yield rank
