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

    async def meters_between(self, since: Micros, until: Micros) -> list[Meter]:
        """The recorded meters of a range of time."""

    async def last_sampled(self, step: Micros, at_most: Micros) -> Micros | None:
        """The newest minute or hour that was made, not after `at_most`."""

    async def first_sampled(self, step: Micros, at_least: Micros) -> Micros | None:
        """The oldest minute or hour that was made, not before `at_least`."""

    async def has_depths(self, minute: Micros) -> bool:
        """Whether jobs were counted in this minute."""

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        """Jobs by queue and status, and how long the oldest pending one of each queue has waited."""

    async def samples(self, window: SampleQuery) -> Samples:
        """The samples of a window."""

    async def write_samples(self, step: Micros, meters: Sequence[Meter], queue_depths: Sequence[Depth]) -> None:
        """Write the samples that count more than the stored ones, all or nothing."""


async def sample(tables: SampleTables) -> Sampled:
    """Make samples of the minutes and hours that are due, and count the jobs once a minute."""
    now = await tables.now()
    due = minutes_due(now, await _last_minute(tables, now))
    made = due[:MAX_MINUTES]
    for minute in made:
        await _make_minute(tables, minute)
    hours = hours_due(now, made, await _missed_hour(tables, now))
    for hour in hours:
        await _make_hour(tables, hour)
    await _count_jobs(tables, start_of(now, MINUTE))
    missed = await _missed_hour(tables, now) if hours else None
    more = len(due) > len(made) or (missed is not None and missed <= closed(now, HOUR))
    return Sampled(len(made), len(hours), 0 if more else start_of(now - LAG, MINUTE) + MINUTE + LAG - now)


async def _last_minute(tables: SampleTables, now: Micros) -> Micros:
    """The newest minute that was made; if there is none, the one before anything was recorded."""
    newest = closed(now, MINUTE)
    last = await tables.last_sampled(MINUTE, newest)
    if last is None:
        starts = [each.interval_start for each in await tables.meters_between(now - METER_RETENTION, newest + MINUTE)]
        last = start_of(min(starts, default=newest + MINUTE), MINUTE) - MINUTE
    return last


async def _make_minute(tables: SampleTables, minute: Micros) -> None:
    roll = Rollup(minute)
    for start in range(minute, minute + MINUTE, INTERVAL):
        roll.add(await tables.meters_between(start, start + INTERVAL))
    stored = await tables.samples(SampleQuery(step=MINUTE, since=minute, until=minute + MINUTE))
    if grown := roll.grown(stored.meters):
        await tables.write_samples(MINUTE, grown, [])


async def _missed_hour(tables: SampleTables, now: Micros) -> Micros | None:
    """The first hour after the last one made that has minutes."""
    last = await tables.last_sampled(HOUR, closed(now, HOUR))
    minute = await tables.first_sampled(MINUTE, 0 if last is None else last + HOUR)
    return None if minute is None else start_of(minute, HOUR)


async def _make_hour(tables: SampleTables, hour: Micros) -> None:
    parts = await tables.samples(SampleQuery(step=MINUTE, since=hour, until=hour + HOUR))
    stored = await tables.samples(SampleQuery(step=HOUR, since=hour, until=hour + HOUR))
    roll = Rollup(hour)
    roll.add(parts.meters)
    grown = roll.grown(stored.meters)
    observed = {each.queue: each.observations for each in stored.depths}
    more = [each for each in merged(hour, parts.depths) if each.observations > observed.get(each.queue, 0)]
    if grown or more:
        await tables.write_samples(HOUR, grown, more)


async def _count_jobs(tables: SampleTables, minute: Micros) -> None:
    if not await tables.has_depths(minute):
        counts, oldest = await tables.counts()
        await tables.write_samples(MINUTE, [], depths(minute, counts.queues, oldest))


def sample_values(step: Micros, meter: Meter) -> dict[str, Any]:
    """A sample's values by column."""
    return {"step": step, **meter_values(meter.interval_start, meter)}


def depth_values(step: Micros, depth: Depth) -> dict[str, Any]:
    """A depth's values by column."""
    return {
        "step": step,
        "interval_start": depth.interval_start,
        "queue": depth.queue,
        "observations": depth.observations,
        "jobs": msgspec.json.encode(depth.jobs).decode(),
        "max_jobs": msgspec.json.encode(depth.max_jobs).decode(),
        "oldest": depth.oldest,
    }


def to_depth(row: tuple[Any, ...]) -> Depth:
    """A row of interval start, queue, observations, jobs, max_jobs, oldest."""
    start, queue, observations, jobs, max_jobs, oldest = row
    return Depth(
        interval_start=start,
        queue=queue,
        observations=observations,
        jobs=_counted(jobs),
        max_jobs=_counted(max_jobs),
        oldest=oldest,
    )


def _counted(stored: Any) -> dict[str, int]:
    """Counts by status; unreadable ones count as none."""
    try:
        return _jobs.decode(stored)
    except UNREADABLE:
        return {}
