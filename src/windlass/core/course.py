"""Courses: samples as people read them, point by point over hours or months. What nobody sampled is a gap."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from windlass.core.meter import Meter
from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.rates import Quantiles, quantiles
from windlass.core.samples import HOUR, LAG, MINUTE, Depth, begin_of, merged, total

By = Literal["queue", "type"]
MINUTES_UP_TO: Micros = 12 * HOUR
"""A course of up to so long is by minutes unless it is asked for by hours: more points than that nobody can see."""
MOST_STEPS = 120
"""Read at a time: an hour of a store with very many types is thousands of rows already."""
_SETTLED: Micros = LAG + 5 * SECOND
"""So long after its end a minute has been made, if anybody makes any."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples: minutes or hours that begin in a stretch of time, of one queue, of one type, or of all."""

    step: Micros
    since: Micros
    until: Micros
    queue: str | None = None
    type: str | None = None


class Stretch(msgspec.Struct, frozen=True):
    """The samples of a window. Those of the queue '' or the type '' are there too, whatever it asked for."""

    meters: tuple[Meter, ...]
    depths: tuple[Depth, ...]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """How it went in one stretch of time."""

    at: datetime
    """When it began."""
    completed: int
    failures: int
    """Attempts that failed, crashed, or made their job dead."""
    per_second: float
    """Completed attempts."""
    wait: Quantiles
    """In seconds, from when an attempt was due to its start."""
    run: Quantiles
    """In seconds, in the handler."""
    jobs: dict[str, float] | None = None
    """By status, on the average; None if nobody looked, and for types: only queues are counted."""
    most: dict[str, int] | None = None
    """By status, the most at any look."""
    oldest: float | None = None
    """How many seconds the pending job that waited longest had waited, at the worst look; None if none waited."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The course of one queue or type, or of all."""

    whole: Point | None
    """All points as one; None if nothing was sampled."""
    points: tuple[Point | None, ...]
    """Oldest first; None is a gap: nobody sampled then."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How it went from one moment to another."""

    since: datetime
    until: datetime
    seconds: float
    """How long a point is."""
    by: By
    lines: dict[str, Line]
    """By the name of the queue or type; '' is what is kept without a name, where there are very many."""
    all: Line


def framed(now: Micros, length: Micros, step: Micros | None, points: int | None) -> tuple[Window, Micros]:
    """The window of what is over and made by now, and how long a point is so that there are no more than `points`."""
    step = step or (MINUTE if length <= MINUTES_UP_TO else HOUR)
    steps = max(1, -(-length // step))
    width = step * -(-steps // min(points or steps, steps))
    until = begin_of(now - _SETTLED, step)
    return Window(step=step, since=until - -(-steps * step // width) * width, until=until), width


class Plot:
    """Puts a course together, piece by piece: what was read is let go again, only points stay."""

    def __init__(self, window: Window, width: Micros, by: By) -> None:
        self._window = window
        self._width = width
        self._by = by
        self._all = _Track(counted=window.type is None)
        self._tracks: dict[str, _Track] = {}
        self._sampled: dict[Micros, _Part] = {}

    def pieces(self) -> Iterator[Window]:
        """What to read, one after the other: each of whole points."""
        size = max(1, MOST_STEPS * self._window.step // self._width) * self._width
        for since in range(self._window.since, self._window.until, size):
            until = min(since + size, self._window.until)
            yield msgspec.structs.replace(self._window, since=since, until=until)

    def add(self, read: Stretch) -> None:
        """One piece that was read."""
        meters: dict[Micros, list[Meter]] = {}
        looks: dict[Micros, list[Depth]] = {}
        for meter in read.meters:
            meters.setdefault(self._begin(meter.slot), []).append(meter)
        for depth in read.depths:
            looks.setdefault(self._begin(depth.slot), []).append(depth)
        for at, measured in meters.items():
            counted = looks.get(at, [])
            part = self._sampled[at] = _Part(
                at=at,
                length=len({meter.slot for meter in measured}) * self._window.step,
                looks=sum(depth.looks for depth in counted if not depth.queue),
            )
            self._add_point(part, self._wanted(measured), counted)

    def course(self) -> Course:
        """What came of it."""
        return Course(
            since=to_datetime(self._window.since),
            until=to_datetime(self._window.until),
            seconds=self._width / SECOND,
            by=self._by,
            lines={name: self._line(self._tracks[name]) for name in sorted(self._tracks)},
            all=self._line(self._all),
        )

    def _add_point(self, part: "_Part", meters: list[Meter], depths: list[Depth]) -> None:
        named: dict[str, list[Meter]] = {}
        for meter in meters:
            named.setdefault(meter.queue if self._by == "queue" else meter.type, []).append(meter)
        looked = {} if self._window.type else {depth.queue: depth for depth in merged(part.at, depths)}
        counted = looked if self._by == "queue" else {}
        for name in named.keys() | counted.keys():
            if self._shown(name, named.get(name, [])):
                if name not in self._tracks:
                    self._tracks[name] = _Track(counted=self._by == "queue" and self._window.type is None)
                self._tracks[name].add(part, named.get(name, []), counted.get(name))
        self._all.add(part, meters, looked.get(self._window.queue or ""))

    def _wanted(self, meters: Iterable[Meter]) -> list[Meter]:
        window = self._window
        return [
            meter
            for meter in meters
            if (window.queue is None or meter.queue == window.queue)
            and (window.type is None or meter.type == window.type)
        ]

    def _shown(self, name: str, meters: list[Meter]) -> bool:
        """What has no name is there in every step, if only to say that it was made."""
        if not name:
            return any(meter.ended for meter in meters)
        return self._by == "type" or self._window.queue in (None, name)

    def _line(self, track: "_Track") -> Line:
        begins = range(self._window.since, self._window.until, self._width)
        idle = {at: track.point(part, _NOTHING, None) for at, part in self._sampled.items() if at not in track.points}
        points = [track.points.get(at) or idle.get(at) for at in begins]
        parts = self._sampled.values()
        whole = _Part(
            at=self._window.since,
            length=sum(part.length for part in parts),
            looks=sum(part.looks for part in parts),
        )
        return Line(whole=track.whole(whole) if parts else None, points=tuple(points))

    def _begin(self, slot: Micros) -> Micros:
        return slot - (slot - self._window.since) % self._width


_NOTHING = Meter(queue="", type="")


class _Part(msgspec.Struct, frozen=True):
    """Of a point: when it began, how much of it was sampled, and how often somebody counted the jobs."""

    at: Micros
    length: Micros
    looks: int


class _Track:
    """What is known of one line so far."""

    def __init__(self, *, counted: bool) -> None:
        self.points: dict[Micros, Point] = {}
        self._counted = counted
        self._meter = _NOTHING
        self._depths: list[Depth] = []

    def add(self, part: _Part, meters: list[Meter], depth: Depth | None) -> None:
        """One point."""
        meter = total("", "", part.at, meters)
        self.points[part.at] = self.point(part, meter, depth)
        self._meter = self._meter.add(meter)
        if depth is not None:
            self._depths = merged(0, [*self._depths, depth])

    def whole(self, part: _Part) -> Point:
        """All of it as one."""
        return self.point(part, self._meter, self._depths[0] if self._depths else None)

    def point(self, part: _Part, meter: Meter, depth: Depth | None) -> Point:
        """A point as people read it. Where somebody looked and found no job of a queue, there was none."""
        looked = self._counted and part.looks > 0
        jobs, most = (depth.jobs, depth.most) if depth is not None else ({}, {})
        return Point(
            at=to_datetime(part.at),
            completed=meter.completed,
            failures=meter.bad,
            per_second=meter.completed * SECOND / part.length,
            wait=quantiles(meter.wait),
            run=quantiles(meter.run),
            jobs={name: number / part.looks for name, number in jobs.items()} if looked else None,
            most=most if looked else None,
            oldest=None if depth is None or depth.oldest is None else depth.oldest / SECOND,
        )
