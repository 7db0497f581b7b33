"""Courses: samples as people read them, point by point over hours or months. What nobody sampled is a gap."""

from datetime import datetime
from typing import Literal

import msgspec

from windlass.core.meter import Meter
from windlass.core.moments import SECOND, Micros
from windlass.core.rates import Quantiles
from windlass.core.samples import HOUR, LAG, MINUTE, Depth, begin_of

By = Literal["queue", "type"]
MINUTES_UP_TO: Micros = 12 * HOUR
"""A course of up to so long is by minutes unless it is asked for by hours: more points than that nobody can see."""
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
