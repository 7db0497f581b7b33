"""record, recent, sample, samples: statistics in tables of their own, so that reading them never scans jobs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import METER_RETENTION, RATE_WINDOW, Meter, Recent, SumBy, interval_of
from windlass.core.stats.samples import MINUTE, Depth, Sampled, pruned_until
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.records import Counts
from windlass.store.rows import meter_values, to_meter, to_summed_meter
from windlass.store.samples import depth_values, sample, sample_values, to_depth
from windlass.store.sql.read_jobs import counts
from windlass.store.sql.session import Session, SharedRole, reading, writing


async def record(db: Session, meters: Sequence[Meter]) -> None:
    """Add to the meters of the current interval. Histograms are added up here, so rows are locked and then read."""
    added: dict[tuple[str, str], Meter] = {}
    for each in meters:
        key = (each.queue, each.type)
        added[key] = each.add(added[key]) if key in added else each
    if not added:
        return
    start = interval_of(await db.now())
    empty = _rows([meter_values(start, Meter(queue=queue, type=type_)) for queue, type_ in sorted(added)])
    await db.run("add_meters", empty)
    for row in await db.rows("lock_meters", empty):
        stored = to_meter(row)
        key = (stored.queue, stored.type)
        added[key] = added[key].add(stored)
    await db.run("set_meters", _rows([meter_values(start, meter) for meter in added.values()]))


async def recent(
    db: Session, length: Micros, queue: str | None = None, type_: str | None = None, by: SumBy | None = None
) -> Recent:
    """The meters of the last intervals."""
    now = await db.now()
    wanted = {"since": interval_of(now - length), "queue": queue, "type": type_}
    if by is None:
        return Recent(now, tuple(map(to_meter, await db.rows("recent_meters", wanted))))
    summed = await db.rows("summed_meters", {**wanted, "by": by, "fresh": interval_of(now - RATE_WINDOW)})
    meters = tuple(to_summed_meter(row[:-1]) for row in summed)
    return Recent(now, meters, sum(row[-1] for row in summed))


async def samples(db: Session, window: SampleQuery) -> Samples:
    """The samples and queue depths of a time window."""
    values = {"step": window.step, "since": window.since, "until": window.until}
    meters = await _sampled(db, window, {**values, "times": window.times})
    if window.times == "none":
        return Samples(meters, ())
    depths = await db.rows("queue_depths", {**values, "queue": window.depth_queue})
    return Samples(meters, tuple(map(to_depth, depths)))


async def _sampled(db: Session, window: SampleQuery, values: dict[str, Any]) -> tuple[Meter, ...]:
    if window.by is not None:
        rows = await db.rows("summed_samples", {**values, "by": window.by})
        # Sorted here, because a database would sort the joined histograms on disk.
        return tuple(map(to_summed_meter, sorted(rows, key=itemgetter(0))))
    return tuple(map(to_meter, await db.rows("samples", {**values, "queue": window.queue, "type": window.type})))


async def write_samples(db: Session, step: Micros, meters: Sequence[Meter], queue_depths: Sequence[Depth]) -> None:
    """Write the samples, except those that count no more than the stored ones."""
    if meters:
        await db.run("set_samples", _rows([sample_values(step, meter) for meter in meters]))
    if queue_depths:
        await db.run("set_queue_depths", _rows([depth_values(step, depth) for depth in queue_depths]))


async def first_sampled(db: Session, step: Micros, at_least: Micros) -> Micros | None:
    """The oldest minute or hour that was sampled, not before `at_least`."""
    found: Micros | None = (await db.rows("first_sampled", {"step": step, "at_least": at_least}))[0][0]
    return found


async def prune_samples(db: Session, step: Micros, since: Micros = 0) -> Micros:
    """Drop old samples from `since` on, or some if they are many; returns the moment before which none is left."""
    now = await db.now()
    if pruned_until(now, step, None) < since:
        since = 0  # the clock was set back: newer samples are older than what was pruned
    until = pruned_until(now, step, await first_sampled(db, step, since))
    if until > since:
        values = {"step": step, "since": since, "until": until}
        await db.run("prune_samples", values)
        await db.run("prune_queue_depths", values)
    return max(since, until)


async def prune_meters(db: Session) -> None:
    """Drop old meters."""
    await db.run("prune_meters", {"before": interval_of(await db.now() - METER_RETENTION)})


async def _last_sampled(db: Session, step: Micros, at_most: Micros) -> Micros | None:
    found: Micros | None = (await db.rows("last_sampled", {"step": step, "at_most": at_most}))[0][0]
    return found


async def _meters_between(db: Session, since: Micros, until: Micros) -> list[Meter]:
    return [to_meter(row) for row in await db.rows("meters_between", {"since": since, "until": until})]


async def _has_depths(db: Session, minute: Micros) -> bool:
    return bool(await db.rows("has_depths", {"step": MINUTE, "interval_start": minute}))


def _rows(values: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Rows as one JSON value."""
    return {"rows": msgspec.json.encode(values).decode()}


class StatsVerbs(SharedRole, ABC):
    """Meters and samples; sampling reads in a session each time, so that no snapshot is held in between."""

    @abstractmethod
    async def oldest(self) -> dict[str, Micros]:
        """How long the oldest pending job of each queue has waited; differs by store."""

    async def sample(self) -> Sampled:
        return await sample(self)

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        """Jobs by queue and status, and how long the oldest pending one of each queue has waited."""
        return await self._sessions.read(counts), await self.oldest()

    now = reading(lambda db: db.now())
    record = writing(record)
    recent = reading(recent)
    samples = reading(samples)
    write_samples = writing(write_samples)
    meters_between = reading(_meters_between)
    last_sampled = reading(_last_sampled)
    first_sampled = reading(first_sampled)
    has_depths = reading(_has_depths)
