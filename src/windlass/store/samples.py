"""Samples: how they are made from what a store keeps, once for all stores; and what they look like in a row.

Reads come first and writes last, each for itself. Two who sample at once write the same; whoever read less than the
other has written changes nothing.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from windlass.core.codec import UNREADABLE
from windlass.core.course import Stretch, Window
from windlass.core.meter import KEPT, SLOT, Meter
from windlass.core.moments import Micros
from windlass.core.samples import (
    HOUR,
    LAG,
    MINUTE,
    MOST_MINUTES,
    Depth,
    Roll,
    Sampled,
    begin_of,
    closed,
    depths,
    hours_due,
    merged,
    minutes_due,
)
from windlass.store.meters import meter_values
from windlass.store.records import Counts

_jobs = msgspec.json.Decoder(dict[str, int])


class Shelves(Protocol):
    """What a store does for it: each one look or one write, by an index."""

    async def now(self) -> Micros:
        """The store's clock."""

    async def slots(self, since: Micros, until: Micros) -> list[Meter]:
        """The meters as they were recorded."""

    async def last(self, step: Micros, at_most: Micros) -> Micros | None:
        """The newest minute or hour that was made, up to one."""

    async def first(self, step: Micros, at_least: Micros) -> Micros | None:
        """The oldest minute or hour that was made, from one on."""

    async def was_looked_at(self, minute: Micros) -> bool:
        """Whether somebody has written down how many jobs there were in this minute."""

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        """Jobs by queue and status, and how long the oldest pending one of each queue has waited."""

    async def stretch(self, window: Window) -> Stretch:
        """What was made."""

    async def sample(self, step: Micros, meters: Sequence[Meter], looked: Sequence[Depth]) -> None:
        """Write down what says more than what is there, all of it or nothing."""


async def sample(shelves: Shelves) -> Sampled:
    """Make the minutes and hours that can be made, and look how many jobs there are, once in a minute."""
    now = await shelves.now()
    due = minutes_due(now, await _last_minute(shelves, now))
    made = due[:MOST_MINUTES]
    for minute in made:
        await _make_minute(shelves, minute)
    hours = hours_due(now, made, await _missed_hour(shelves, now))
    for hour in hours:
        await _make_hour(shelves, hour)
    await _look(shelves, begin_of(now, MINUTE))
    missed = await _missed_hour(shelves, now) if hours else None
    more = len(due) > len(made) or (missed is not None and missed <= closed(now, HOUR))
    return Sampled(len(made), len(hours), 0 if more else begin_of(now - LAG, MINUTE) + MINUTE + LAG - now)


async def _last_minute(shelves: Shelves, now: Micros) -> Micros:
    """The newest minute that was made; at the very first time the one before anything was recorded."""
    newest = closed(now, MINUTE)
    last = await shelves.last(MINUTE, newest)
    if last is None:
        slots = [each.slot for each in await shelves.slots(now - KEPT, newest + MINUTE)]
        last = begin_of(min(slots, default=newest + MINUTE), MINUTE) - MINUTE
    return last


async def _make_minute(shelves: Shelves, minute: Micros) -> None:
    roll = Roll(minute)
    for slot in range(minute, minute + MINUTE, SLOT):
        roll.add(await shelves.slots(slot, slot + SLOT))
    there = await shelves.stretch(Window(step=MINUTE, since=minute, until=minute + MINUTE))
    if grown := roll.grown(there.meters):
        await shelves.sample(MINUTE, grown, [])


async def _missed_hour(shelves: Shelves, now: Micros) -> Micros | None:
    """The first hour after the last that was made of which there are minutes."""
    last = await shelves.last(HOUR, closed(now, HOUR))
    minute = await shelves.first(MINUTE, 0 if last is None else last + HOUR)
    return None if minute is None else begin_of(minute, HOUR)


async def _make_hour(shelves: Shelves, hour: Micros) -> None:
    parts = await shelves.stretch(Window(step=MINUTE, since=hour, until=hour + HOUR))
    there = await shelves.stretch(Window(step=HOUR, since=hour, until=hour + HOUR))
    roll = Roll(hour)
    roll.add(parts.meters)
    grown = roll.grown(there.meters)
    looks = {each.queue: each.looks for each in there.depths}
    seen = [each for each in merged(hour, parts.depths) if each.looks > looks.get(each.queue, 0)]
    if grown or seen:
        await shelves.sample(HOUR, grown, seen)


async def _look(shelves: Shelves, minute: Micros) -> None:
    if not await shelves.was_looked_at(minute):
        counts, oldest = await shelves.counts()
        await shelves.sample(MINUTE, [], depths(minute, counts.queues, oldest))


def sample_values(step: Micros, meter: Meter) -> dict[str, Any]:
    """What is written of the meter of a minute or hour, by column."""
    return {"step": step, **meter_values(meter.slot, meter)}


def depth_values(step: Micros, depth: Depth) -> dict[str, Any]:
    """What is written of a depth, by column."""
    return {
        "step": step,
        "slot": depth.slot,
        "queue": depth.queue,
        "looks": depth.looks,
        "jobs": msgspec.json.encode(depth.jobs).decode(),
        "most": msgspec.json.encode(depth.most).decode(),
        "oldest": depth.oldest,
    }


def to_depth(row: tuple[Any, ...]) -> Depth:
    """A row of slot, queue, looks, jobs, most, oldest."""
    slot, queue, looks, jobs, most, oldest = row
    return Depth(slot=slot, queue=queue, looks=looks, jobs=_counted(jobs), most=_counted(most), oldest=oldest)


def _counted(stored: Any) -> dict[str, int]:
    """What somebody edited by hand into something else counts as nothing: these are only statistics."""
    try:
        return _jobs.decode(stored)
    except UNREADABLE:
        return {}
