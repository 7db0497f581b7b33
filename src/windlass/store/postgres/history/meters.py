"""record, recent, oldest: statistics, summed up so that reading them never scans jobs."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.core.stats.meter import COUNTERS, Meter, Recent, interval_of
from windlass.store.postgres.connection.db import Db
from windlass.store.rows import meter_values, to_meter

_COLUMNS = ("queue", "type", *COUNTERS, "wait", "run")


async def record(db: Db, meters: Sequence[Meter]) -> None:
    """Add to the current interval. Histograms are added in code, so each row is locked before it is read."""
    added: dict[tuple[str, str], Meter] = {}
    for each in meters:
        place = (each.queue, each.type)
        added[place] = each.add(added[place]) if place in added else each
    places = sorted(added)
    if not places:
        return
    slot = interval_of(await db.now())
    at = {"slot": slot, "queues": [queue for queue, _ in places], "types": [type_ for _, type_ in places]}
    await db.run("add_meters", at)
    for row in await db.rows("lock_meters", at):
        there = to_meter(tuple(row))
        place = (there.queue, there.type)
        added[place] = added[place].add(there)
    written = [meter_values(slot, added[place]) for place in places]
    columns = {f"{name}s": [values[name] for values in written] for name in _COLUMNS}
    await db.run("set_meters", {"slot": slot, **columns})


async def recent(db: Db, length: Micros) -> Recent:
    """One range of the primary key."""
    now = await db.now()
    rows = await db.rows("meters", {"since": interval_of(now - length)})
    return Recent(now, tuple(to_meter(tuple(row)) for row in rows))


async def oldest(db: Db) -> dict[str, Micros]:
    """A rank is the moment from which a job waits, and the index has the lowest first."""
    return dict(map(tuple, await db.rows("oldest")))
