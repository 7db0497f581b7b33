"""record, recent, oldest: statistics, kept added up so that reading them never walks the jobs."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from windlass.core.codec import UNREADABLE
from windlass.core.job import HIGHEST_PRIORITY
from windlass.core.meter import COUNTERS, Buckets, Histogram, Meter, Recent, slot_of
from windlass.core.moments import Micros
from windlass.store.sqlite.db import Db

MOST_PRIORITIES = 100
"""In how many priorities of a queue the oldest job is looked for."""

_buckets = msgspec.json.Decoder(Buckets)


def record(db: Db, meters: Sequence[Meter]) -> None:
    """Add to the slot of this moment."""
    slot = slot_of(db.now)
    for each in meters:
        there = db.rows("meter", {"slot": slot, "queue": each.queue, "type": each.type})
        _write(db, slot, each.add(_record(there[0])) if there else each)


def recent(db: Db, length: Micros) -> Recent:
    """One range of the primary key."""
    now = db.now
    rows = db.rows("meters", {"since": slot_of(now - length)})
    return Recent(now, tuple(_record(row) for row in rows))


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


def _write(db: Db, slot: Micros, meter: Meter) -> None:
    values: dict[str, Any] = {name: getattr(meter, name) for name in ("queue", "type", *COUNTERS)}
    for name in ("wait", "run"):
        values[name] = msgspec.json.encode(getattr(meter, name).buckets).decode()
    db.run("set_meter", {"slot": slot, **values})


def _record(row: tuple[Any, ...]) -> Meter:
    slot, queue, type_, *counted, wait, run = row
    counters = dict(zip(COUNTERS, counted, strict=True))
    return Meter(slot=slot, queue=queue, type=type_, wait=_histogram(wait), run=_histogram(run), **counters)


def _histogram(stored: Any) -> Histogram:
    """What somebody edited by hand into something else counts as nothing: these are only statistics."""
    try:
        return Histogram(_buckets.decode(stored))
    except UNREADABLE:
        return Histogram()
