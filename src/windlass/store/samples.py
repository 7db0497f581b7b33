"""Sampling, the same for all stores, and samples in rows.

Reads come first, writes last, each in its own call. Two processes that sample at once write the same; a smaller
sample never replaces a larger one.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from windlass.core.codec import UNREADABLE
from windlass.core.moments import Micros
from windlass.core.stats.meter import INTERVAL, METER_RETENTION, Meter
from windlass.core.stats.samples import (
    HOUR,
    LAG,
    MAX_MINUTES,
    MINUTE,
    Depth,
    Rollup,
    Sampled,
    closed,
    depths,
    hours_due,
    merged,
    minutes_due,
    start_of,
)
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.records import Counts
from windlass.store.rows import meter_values

_jobs = msgspec.json.Decoder(dict[str, int])


class SampleTables(Protocol):
    """What a store provides for sampling: each one indexed read or one write."""

    async def now(self) -> Micros:
        """The store's clock."""

    async def slots(self, since: Micros, until: Micros) -> list[Meter]:
        """The recorded meters."""

    async def last(self, step: Micros, at_most: Micros) -> Micros | None:
        """The newest minute or hour that was made, up to one."""

    async def first(self, step: Micros, at_least: Micros) -> Micros | None:
        """The oldest minute or hour that was made, from one on."""

    async def was_looked_at(self, minute: Micros) -> bool:
        """Whether jobs were counted in this minute."""

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        """Jobs by queue and status, and how long the oldest pending one of each queue has waited."""

    async def stretch(self, window: SampleQuery) -> Samples:
        """The samples of a window."""

    async def sample(self, step: Micros, meters: Sequence[Meter], looked: Sequence[Depth]) -> None:
        """Write what counts more than the stored samples, all or nothing."""


async def sample(tables: SampleTables) -> Sampled:
    """Make the minutes and hours that can be made, and count the jobs once a minute."""
    now = await tables.now()
    due = minutes_due(now, await _last_minute(tables, now))
    made = due[:MAX_MINUTES]
    for minute in made:
        await _make_minute(tables, minute)
    hours = hours_due(now, made, await _missed_hour(tables, now))
    for hour in hours:
        await _make_hour(tables, hour)
    await _look(tables, start_of(now, MINUTE))
    missed = await _missed_hour(tables, now) if hours else None
    more = len(due) > len(made) or (missed is not None and missed <= closed(now, HOUR))
    return Sampled(len(made), len(hours), 0 if more else start_of(now - LAG, MINUTE) + MINUTE + LAG - now)


async def _last_minute(tables: SampleTables, now: Micros) -> Micros:
    """The newest minute that was made; the first time, the one before anything was recorded."""
    newest = closed(now, MINUTE)
    last = await tables.last(MINUTE, newest)
    if last is None:
        slots = [each.interval_start for each in await tables.slots(now - METER_RETENTION, newest + MINUTE)]
        last = start_of(min(slots, default=newest + MINUTE), MINUTE) - MINUTE
    return last


async def _make_minute(tables: SampleTables, minute: Micros) -> None:
    roll = Rollup(minute)
    for slot in range(minute, minute + MINUTE, INTERVAL):
        roll.add(await tables.slots(slot, slot + INTERVAL))
    there = await tables.stretch(SampleQuery(step=MINUTE, since=minute, until=minute + MINUTE))
    if grown := roll.grown(there.meters):
        await tables.sample(MINUTE, grown, [])


async def _missed_hour(tables: SampleTables, now: Micros) -> Micros | None:
    """The first hour after the last one made that has minutes."""
    last = await tables.last(HOUR, closed(now, HOUR))
    minute = await tables.first(MINUTE, 0 if last is None else last + HOUR)
    return None if minute is None else start_of(minute, HOUR)


async def _make_hour(tables: SampleTables, hour: Micros) -> None:
    parts = await tables.stretch(SampleQuery(step=MINUTE, since=hour, until=hour + HOUR))
    there = await tables.stretch(SampleQuery(step=HOUR, since=hour, until=hour + HOUR))
    roll = Rollup(hour)
    roll.add(parts.meters)
    grown = roll.grown(there.meters)
    looks = {each.queue: each.observations for each in there.depths}
    seen = [each for each in merged(hour, parts.depths) if each.observations > looks.get(each.queue, 0)]
    if grown or seen:
        await tables.sample(HOUR, grown, seen)


async def _look(tables: SampleTables, minute: Micros) -> None:
    if not await tables.was_looked_at(minute):
        counts, oldest = await tables.counts()
        await tables.sample(MINUTE, [], depths(minute, counts.queues, oldest))


def sample_values(step: Micros, meter: Meter) -> dict[str, Any]:
    """A sample's values by column."""
    return {"step": step, **meter_values(meter.interval_start, meter)}


def depth_values(step: Micros, depth: Depth) -> dict[str, Any]:
    """A depth's values by column."""
    return {
        "step": step,
        "slot": depth.interval_start,
        "queue": depth.queue,
        "looks": depth.observations,
        "jobs": msgspec.json.encode(depth.jobs).decode(),
        "most": msgspec.json.encode(depth.max_jobs).decode(),
        "oldest": depth.oldest,
    }


def to_depth(row: tuple[Any, ...]) -> Depth:
    """A row of interval start, queue, observations, jobs, max_jobs, oldest."""
    slot, queue, looks, jobs, most, oldest = row
    return Depth(
        interval_start=slot,
        queue=queue,
        observations=looks,
        jobs=_counted(jobs),
        max_jobs=_counted(most),
        oldest=oldest,
    )


def _counted(stored: Any) -> dict[str, int]:
    """Counts by status; unreadable ones count as none."""
    try:
        return _jobs.decode(stored)
    except UNREADABLE:
        return {}
