"""Ticks: the moments of a timetable, those that are due, and how missed ones are made up. Pure.

A tick has one job, whose id is made of schedule and moment: enqueueing it twice, by any process, is harmless.
"""

from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import DAY, MAX_TIME, SECOND, Micros
from windlass.core.schedules.cron import Cron, next_match

LATE: Micros = 10 * SECOND
"""A tick that is overdue for longer was missed: no coordinator ran. Others are only late, and run."""
MAX_AT_ONCE = 1000
"""Ticks made up per firing; the rest follow with the next firing."""
MAX_COUNTED = 100
"""Missed ticks are counted up to here."""
_WINDOWS = (60 * SECOND, 3600 * SECOND, DAY, 31 * DAY, 366 * DAY, 9 * 366 * DAY)
"""Windows for the search of the last tick, shortest first: nine years cover a missing 29 February."""


class CatchUp(StrEnum):
    """How missed ticks are made up."""

    ONE = "one"
    """The last of them runs."""
    ALL = "all"
    """Each of them runs."""
    NONE = "none"
    """None of them runs."""


class Timetable(msgspec.Struct, frozen=True, kw_only=True):
    """The ticks of a schedule: matches of a cron expression in a zone, or every interval since its anchor."""

    cron: Cron | None = None
    zone: str = "UTC"
    every: Micros | None = None
    anchor: Micros = 0

    def next(self, after: Micros) -> Micros | None:
        """The first tick after a moment; None if there is none before the year 2200."""
        if self.every is not None:
            tick = self.anchor + max(0, (after - self.anchor) // self.every + 1) * self.every
            return tick if tick < MAX_TIME else None
        assert self.cron is not None
        return next_match(self.cron, self.zone, after)

    def last(self, upto: Micros, earliest: Micros) -> Micros | None:
        """The last tick up to one moment, and not before another."""
        if self.every is not None:
            count = (upto - self.anchor) // self.every
            tick = self.anchor + count * self.every
            return tick if count >= 0 and tick >= earliest else None
        for window in _WINDOWS:
            begin = max(upto - window, earliest - 1)
            last = None
            for last in self.between(begin, upto):  # noqa: B007 - the last one is wanted
                pass
            if last is not None or begin == earliest - 1:
                return last
        return None

    def between(self, after: Micros, upto: Micros) -> Iterator[Micros]:
        """Ticks after one moment and up to another, in order."""
        tick = self.next(after)
        while tick is not None and tick <= upto:
            yield tick
            tick = self.next(tick)


class Due(msgspec.Struct, frozen=True):
    """The ticks of a schedule that are due at a moment, and the next one."""

    ticks: tuple[Micros, ...]
    """The ticks that run, in order."""
    next: Micros | None
    """The next tick; None: there is none."""
    missed: int
    """The number of missed ticks, up to a bound."""


def due(table: Timetable, pending: Micros, now: Micros, catch_up: CatchUp) -> Due:
    """The ticks that are due at a moment, if `pending` is the first that was not fired."""
    if pending > now:
        return Due((), pending, 0)
    if pending > now - LATE or catch_up is CatchUp.ALL:
        return _all_since(table, pending, now)
    recent = tuple(_first(table.between(now - LATE, now), MAX_AT_ONCE))
    late = None if recent or catch_up is CatchUp.NONE else table.last(now - LATE, pending)
    ticks = recent if late is None else (late,)
    counted = sum(1 for _ in _first(table.between(pending - 1, now), MAX_COUNTED))
    return Due(ticks, table.next(recent[-1] if recent else now), max(0, counted - len(ticks)))


def _all_since(table: Timetable, pending: Micros, now: Micros) -> Due:
    """The pending tick and all after it."""
    ticks, following = [pending], table.next(pending)
    while following is not None and following <= now and len(ticks) < MAX_AT_ONCE:
        ticks.append(following)
        following = table.next(following)
    return Due(tuple(ticks), following, 0)


def tick_id(schedule: str, tick: Micros) -> JobId:
    """The id of a tick's job: a UUIDv7 of the tick's moment, so that it sorts by time."""
    digest = sha256(f"{schedule}\x00{tick}".encode()).digest()
    number = (tick // 1000 & (1 << 48) - 1) << 80 | int.from_bytes(digest[:10])
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def jittered(schedule: str, tick: Micros, most: Micros) -> Micros:
    """When a tick's job runs: up to `most` later, and always the same for the same tick."""
    if most <= 0:
        return tick
    digest = sha256(f"jitter\x00{schedule}\x00{tick}".encode()).digest()
    return tick + int.from_bytes(digest[:8]) % most


def _first(ticks: Iterator[Micros], most: int) -> Iterator[Micros]:
    for _, tick in zip(range(most), ticks, strict=False):
        yield tick
