"""Timelines: samples as points over hours or months. A step that was not sampled is a gap."""

from datetime import datetime
from typing import Literal

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.core.stats.meter import Meter
from windlass.core.stats.recent_stats import Quantiles
from windlass.core.stats.samples import HOUR, LAG, MINUTE, Depth, start_of

By = Literal["queue", "type", "all"]
"""The series of a timeline; "all": only the sum."""
Times = Literal["both", "wait", "run", "none"]
"""Which times are read."""
MINUTES_UP_TO: Micros = 12 * HOUR
"""A timeline of up to this length is by minutes unless hours are asked for."""
_MADE_WITHIN: Micros = LAG + 5 * SECOND
"""This long after its end a minute has been made, if a coordinator runs."""


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for samples: steps that begin in a window, of one queue, of one type, or of all."""

    step: Micros
    since: Micros
    until: Micros
    queue: str | None = None
    type: str | None = None
    times: Times = "both"
    """Histograms are most of a sample. "none": counts of attempts alone, also without depths."""
    by: By | None = None
    """Without a queue or type: add up the samples of a step for each queue, for each type, or for all."""

    @property
    def depth_queue(self) -> str | None:
        """The queue whose depths are wanted besides those of all jobs; None: every queue."""
        return "" if self.by in ("type", "all") else self.queue


class Samples(msgspec.Struct, frozen=True):
    """The samples of a window, always with those of the queue '' and the type ''."""

    meters: tuple[Meter, ...]
    depths: tuple[Depth, ...]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One step, or several, of a timeline."""

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
    """By status, the mean; None if not observed, and for types, since only queues are counted."""
    max_jobs: dict[str, int] | None = None
    """By status, the maximum."""
    oldest: float | None = None
    """The longest wait of a pending job, in seconds; None if none was pending."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The timeline of one queue or type, or of all."""

    whole: Point | None
    """The sum of all points; None if nothing was sampled."""
    points: tuple[Point | None, ...]
    """Oldest first; None is a gap."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics from one moment to another."""

    since: datetime
    until: datetime
    seconds: float
    """The length of a point."""
    by: By
    series: dict[str, Series]
    """By queue or type; '' is the sum of those that are kept without a name. Empty for "all"."""
    all: Series


def sample_window(now: Micros, length: Micros, step: Micros | None, points: int | None) -> tuple[SampleQuery, Micros]:
    """The window of complete samples, and the length of a point so that there are at most `points`."""
    step = step or (MINUTE if length <= MINUTES_UP_TO else HOUR)
    steps = max(1, -(-length // step))
    width = step * -(-steps // min(points or steps, steps))
    until = start_of(now - _MADE_WITHIN, step)
    return SampleQuery(step=step, since=until - -(-steps * step // width) * width, until=until), width
