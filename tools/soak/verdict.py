"""Whether a series of samples stays flat: its first quarter after warm-up against its last, and its slope."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

WARM_UP = 0.2
"""The first part of a run, in which pools, caches and retention fill up, is not judged."""
MAX_POINTS = 120
"""More are averaged to this number: the slope looks at every pair."""
HOUR = 3600.0

Point = tuple[float, float]
"""Seconds since the start, and a value."""


class Tolerance(NamedTuple):
    """What a series may gain between the quarters and still counts as flat: the larger of the two."""

    share: float
    absolute: float
    """An amount, or for `hourly` an amount per hour."""
    hourly: bool = False


TOLERANCES = {
    "rss_mb": Tolerance(0.03, 2.0, hourly=True),
    "uss_mb": Tolerance(0.03, 2.0, hourly=True),
    "fds": Tolerance(0.0, 1.0),
    "threads": Tolerance(0.0, 1.0),
    "children": Tolerance(0.0, 1.0),
    "connections": Tolerance(0.0, 1.0),
    "keys": Tolerance(0.0, 1.0),
    "rows": Tolerance(0.15, 30.0),
    "size_mb": Tolerance(0.15, 2.0, hourly=True),
}
"""By the second part of a series' name, such as sqlite/rows/jobs or redis/uss_mb/producer."""

KEPT_LONGER = {
    "tombstones": "ids of dropped jobs, for a day",
    "samples": "statistics, for 7 and 400 days",
    "queue_depths": "statistics, for 7 and 400 days",
    "meters": "statistics of ten seconds, for an hour",
    "*.meters": "statistics of ten seconds, for an hour",
    "*.meter_index": "statistics of ten seconds, for an hour",
    "*.samples": "statistics, for 7 and 400 days",
    "*.sample_index": "statistics, for 7 and 400 days",
    "*.ended_runners": "runners that have ended",
    "ended_runners": "runners that have ended",
    "tombstone_times": "ids of dropped jobs, for a day",
    "kept longer": "all of these",
    "used memory": "all of these and the rest",
}
"""Rows that stay longer than a soak takes: they grow by design, and are shown without a verdict."""


class Judged(NamedTuple):
    """One line of the table."""

    series: str
    first: float
    last: float
    slope: float
    """Per hour."""
    verdict: str


def judge(series: str, points: Sequence[Point]) -> Judged:
    """`flat`, `GROWS`, `kept longer`, or `too few samples`."""
    steady = after_warm_up(points)
    if len(steady) < 8:
        return Judged(series, 0.0, 0.0, 0.0, "too few samples")
    quarter = len(steady) // 4
    first, last = steady[:quarter], steady[-quarter:]
    before, after = _mean(first), _mean(last)
    slope = theil_sen(steady) * HOUR
    hours = (statistics.fmean(at for at, _ in last) - statistics.fmean(at for at, _ in first)) / HOUR
    _, kind, name = series.split("/")
    if name in KEPT_LONGER:
        verdict = "kept longer"
    else:
        verdict = "GROWS" if slope > 0 and after - before > allowed(kind, before, hours) else "flat"
    return Judged(series, before, after, slope, verdict)


def allowed(kind: str, before: float, hours: float) -> float:
    """What a series of this kind may gain in so many hours."""
    share, absolute, hourly = TOLERANCES[kind]
    return max(share * before, absolute * hours if hourly else absolute)


def after_warm_up(points: Sequence[Point]) -> Sequence[Point]:
    if not points:
        return points
    begin, end = points[0][0], points[-1][0]
    return [point for point in points if point[0] >= begin + WARM_UP * (end - begin)]


def theil_sen(points: Sequence[Point]) -> float:
    """The median slope of all pairs: outliers, such as samples during an outage, do not move it."""
    few = _thinned(points)
    return statistics.median(
        (y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(few) for x2, y2 in few[i + 1 :] if x2 > x1
    )


def _thinned(points: Sequence[Point]) -> list[Point]:
    size = -(-len(points) // MAX_POINTS)
    parts = [points[i : i + size] for i in range(0, len(points), size)]
    return [(statistics.fmean(at for at, _ in part), _mean(part)) for part in parts]


def _mean(points: Sequence[Point]) -> float:
    return statistics.fmean(value for _, value in points)
