"""Builds a timeline from samples, piece by piece."""

from collections.abc import Iterable, Iterator

import msgspec

from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.stats.meter import Meter, Recent
from windlass.core.stats.recent_stats import quantiles
from windlass.core.stats.samples import Depth, merged
from windlass.core.stats.timeline import By, Point, SampleQuery, Samples, Series, Timeline

MAX_STEPS = 120
"""Steps read at a time: an hour of a store with very many types is thousands of rows."""


class TimelineBuilder:
    """Takes samples in order of time and keeps only points."""

    def __init__(self, window: SampleQuery, width: Micros, by: By) -> None:
        self._window = window
        self._width = width
        self._by = by
        self._all = _Track(counted=window.type is None)
        self._tracks: dict[str, _Track] = {}
        self._sampled: dict[Micros, _Part] = {}

    def pieces(self) -> Iterator[SampleQuery]:
        """The queries to make, in order of time."""
        size = MAX_STEPS * self._window.step
        for since in range(self._window.since, self._window.until, size):
            until = min(since + size, self._window.until)
            yield msgspec.structs.replace(self._window, since=since, until=until)

    def add(self, read: Samples) -> None:
        """Add the samples of one query."""
        meters: dict[Micros, list[Meter]] = {}
        depths: dict[Micros, list[Depth]] = {}
        for meter in read.meters:
            meters.setdefault(self._begin(meter.interval_start), []).append(meter)
        for depth in read.depths:
            depths.setdefault(self._begin(depth.interval_start), []).append(depth)
        for at, measured in meters.items():
            counted = depths.get(at, [])
            part = self._sampled.setdefault(at, _Part(at))
            part.length += len({meter.interval_start for meter in measured}) * self._window.step
            part.observations += sum(depth.observations for depth in counted if not depth.queue)
            self._add_to(part, self._wanted(measured), counted)

    def build(self) -> Timeline:
        return Timeline(
            since=to_datetime(self._window.since),
            until=to_datetime(self._window.until),
            seconds=self._width / SECOND,
            by=self._by,
            series={name: self._line(self._tracks[name]) for name in sorted(self._tracks)},
            all=self._line(self._all),
        )

    def _add_to(self, part: "_Part", meters: list[Meter], depths: list[Depth]) -> None:
        looked = {} if self._window.type else {depth.queue: depth for depth in merged(part.at, depths)}
        if self._by == "all":
            self._all.add(part, _sum(meters), looked.get(self._window.queue or ""))
            return
        named: dict[str, list[Meter]] = {}
        for meter in meters:
            named.setdefault(meter.queue if self._by == "queue" else meter.type, []).append(meter)
        counted = looked if self._by == "queue" else {}
        sums = {name: _sum(found) for name, found in named.items()}
        for name in sums.keys() | counted.keys():
            if self._shown(name, sums.get(name)):
                if name not in self._tracks:
                    self._tracks[name] = _Track(counted=self._by == "queue" and self._window.type is None)
                self._tracks[name].add(part, sums.get(name, _NOTHING), counted.get(name))
        self._all.add(part, _sum([*sums.values()]), looked.get(self._window.queue or ""))

    def _wanted(self, meters: Iterable[Meter]) -> list[Meter]:
        window = self._window
        return [
            meter
            for meter in meters
            if (window.queue is None or meter.queue == window.queue)
            and (window.type is None or meter.type == window.type)
        ]

    def _shown(self, name: str, meter: Meter | None) -> bool:
        """Whether the series is shown. The unnamed rest is in every step, sometimes only to mark the step as made."""
        if not name:
            return meter is not None and meter.ended > 0
        return self._by == "type" or self._window.queue in (None, name)

    def _line(self, track: "_Track") -> Series:
        track.close()
        begins = range(self._window.since, self._window.until, self._width)
        idle = {at: track.point(part, _NOTHING) for at, part in self._sampled.items() if at not in track.points}
        points = [track.points.get(at) or idle.get(at) for at in begins]
        parts = self._sampled.values()
        length, observations = sum(part.length for part in parts), sum(part.observations for part in parts)
        whole = _Part(self._window.since, length, observations)
        return Series(whole=track.whole(whole) if parts else None, points=tuple(points))

    def _begin(self, start: Micros) -> Micros:
        return start - (start - self._window.since) % self._width


_NOTHING = Meter(queue="", type="")
_NEVER: tuple[Depth, ...] = ()
_EMPTY = Depth(queue="", interval_start=0, jobs={}, max_jobs={})


class _Part(msgspec.Struct):
    """A point: when it began, how much of it was sampled, and how often jobs were counted."""

    at: Micros
    length: Micros = 0
    observations: int = 0


class _Track:
    """One series so far. Keeps the parts of a point until the next one begins."""

    def __init__(self, *, counted: bool) -> None:
        self.points: dict[Micros, Point] = {}
        self._counted = counted
        self._open: _Part | None = None
        self._now = self._ever = (_NOTHING, _NEVER)

    def add(self, part: _Part, meter: Meter, depth: Depth | None) -> None:
        """Add a part of a point."""
        if self._open is not part:
            self.close()
            self._open = part
        self._now = _joined(self._now, (meter, () if depth is None else (depth,)))

    def close(self) -> None:
        """Complete the point."""
        if self._open is not None:
            self.points[self._open.at] = self.point(self._open, *self._now)
            self._ever = _joined(self._ever, self._now)
        self._open, self._now = None, (_NOTHING, _NEVER)

    def whole(self, part: _Part) -> Point:
        return self.point(part, *self._ever)

    def point(self, part: _Part, meter: Meter, depths: tuple[Depth, ...] = ()) -> Point:
        """The point. A queue that is missing where jobs were counted had none."""
        looked = self._counted and part.observations > 0
        depth = depths[0] if depths else _EMPTY
        return Point(
            at=to_datetime(part.at),
            completed=meter.completed,
            failures=meter.bad,
            per_second=meter.completed * SECOND / part.length,
            wait=quantiles(meter.wait),
            run=quantiles(meter.run),
            jobs={name: number / part.observations for name, number in depth.jobs.items()} if looked else None,
            max_jobs=depth.max_jobs if looked else None,
            oldest=None if depth.oldest is None else depth.oldest / SECOND,
        )


def _joined(
    one: tuple[Meter, tuple[Depth, ...]], other: tuple[Meter, tuple[Depth, ...]]
) -> tuple[Meter, tuple[Depth, ...]]:
    depths = one[1] + other[1]
    return one[0].add(other[0]) if one[0] is not _NOTHING else other[0], tuple(merged(0, depths)) if depths else ()


def _sum(meters: list[Meter]) -> Meter:
    return meters[0] if len(meters) == 1 else Recent(0, tuple(meters)).total()
