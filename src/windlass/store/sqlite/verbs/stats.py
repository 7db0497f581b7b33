"""record, recent, oldest, sample, samples: statistics, added up when they are written."""

from collections.abc import Iterator, Sequence

from windlass.core.jobs.job import MAX_PRIORITY
from windlass.core.moments import Micros
from windlass.core.stats.meter import Meter, Recent, interval_of
from windlass.core.stats.samples import MINUTE, Depth
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.records import Counts
from windlass.store.rows import meter_values, to_meter
from windlass.store.samples import depth_values, sample_values, to_depth
from windlass.store.sqlite.connection.access import Role, read_verb
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.verbs import read_jobs

MAX_PRIORITIES = 100
"""In how many priorities of a queue the oldest job is looked for."""


def record(db: Db, meters: Sequence[Meter]) -> None:
    """Add to the meters of the current interval."""
    start = interval_of(db.now)
    for each in meters:
        found = db.rows("meter", {"slot": start, "queue": each.queue, "type": each.type})
        db.run("set_meter", meter_values(start, each.add(to_meter(found[0])) if found else each))


def recent(db: Db, length: Micros) -> Recent:
    """The meters of the last intervals."""
    now = db.now
    rows = db.rows("meters", {"since": interval_of(now - length)})
    return Recent(now, tuple(to_meter(row) for row in rows))


def oldest(db: Db) -> dict[str, Micros]:
    """How long the oldest pending job of each queue has waited: the lowest rank of each priority is in the index."""
    now = db.now
    return {queue: max(0, now - min(_first_ranks(db, queue))) for queue in _queues(db)}


def _queues(db: Db) -> Iterator[str]:
    after = ""
    while rows := db.rows("next_queue", {"after": after}):
        after = rows[0][0]
        yield after


def _first_ranks(db: Db, queue: str) -> Iterator[Micros]:
    after = -MAX_PRIORITY - 1
    for _ in range(MAX_PRIORITIES):
        if not (rows := db.rows("next_priority", {"queue": queue, "after": after})):
            return
        after, rank = rows[0]
        yield rank


class SqliteSampleStore(Role):
    """Reads in snapshots, so that no write waits while samples are made."""

    now = read_verb(lambda db: db.now)

    async def slots(self, since: Micros, until: Micros) -> list[Meter]:
        values = {"since": since, "until": until}
        return [to_meter(row) for row in await self._access.read(lambda db: db.rows("meters_between", values))]

    async def last(self, step: Micros, at_most: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "last_sampled", {"step": step, "at_most": at_most}))

    async def first(self, step: Micros, at_least: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "first_sampled", {"step": step, "at_least": at_least}))

    async def was_looked_at(self, minute: Micros) -> bool:
        return bool(await self._access.read(lambda db: db.rows("has_queue_depth", {"step": MINUTE, "slot": minute})))

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await self._access.read(lambda db: (read_jobs.counts(db), oldest(db)))

    async def stretch(self, window: SampleQuery) -> Samples:
        return await self._access.read(lambda db: samples(db, window))

    async def sample(self, step: Micros, meters: Sequence[Meter], looked: Sequence[Depth]) -> None:
        def work(db: Db) -> None:
            db.run_many("set_sample", [sample_values(step, meter) for meter in meters])
            db.run_many("set_queue_depth", [depth_values(step, depth) for depth in looked])

        await self._access.write(work)


def samples(db: Db, window: SampleQuery) -> Samples:
    """The samples and queue depths of a time window."""
    values = {"step": window.step, "since": window.since, "until": window.until, "queue": window.queue}
    return Samples(
        tuple(to_meter(row) for row in db.rows("samples", {**values, "type": window.type})),
        tuple(to_depth(row) for row in db.rows("queue_depths", values)),
    )


def _moment(db: Db, name: str, values: dict[str, Micros]) -> Micros | None:
    found: Micros | None = db.rows(name, values)[0][0]
    return found
