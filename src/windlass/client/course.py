"""What is asked of a course, checked; and how it is read, piece by piece."""

from datetime import timedelta
from typing import Literal, get_args

import msgspec

from windlass.core.course import By, Course, framed
from windlass.core.moments import DAY, Micros, duration
from windlass.core.names import check_name
from windlass.core.plot import Plot
from windlass.core.samples import HOUR, KEPT_FOR, MINUTE
from windlass.errors import InvalidOption
from windlass.store.contract import Store

Step = Literal["minute", "hour"]
STEPS: dict[str, Micros] = {"minute": MINUTE, "hour": HOUR}
MOST_POINTS = 10_080
"""A week of minutes: no course that is kept has more steps than that."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A course as a caller asks for it."""

    length: float | timedelta
    by: By
    step: Step | None
    points: int | None
    queue: str | None
    type: str | None

    def check(self) -> Micros:
        """Refuse what cannot be; how long it is."""
        if self.by not in get_args(By):
            raise InvalidOption("by", f"{self.by!r:.100} is not one of {', '.join(get_args(By))}")
        if self.step is not None and self.step not in STEPS:
            raise InvalidOption("step", f"{self.step!r:.100} is not one of {', '.join(STEPS)}")
        whole = isinstance(self.points, int) and not isinstance(self.points, bool)
        if self.points is not None and not (whole and 1 <= self.points <= MOST_POINTS):
            raise InvalidOption("points", f"must be a whole number from 1 to {MOST_POINTS}, not {self.points!r:.100}")
        for name, value in (("queue", self.queue), ("type", self.type)):
            if value is not None:
                check_name(value, name)
        return self._length()

    def _length(self) -> Micros:
        micros = duration(self.length, "length")
        kept = KEPT_FOR[HOUR if self.step is None else STEPS[self.step]]
        if not 0 < micros <= kept:
            words = "" if self.step is None else f" by the {self.step}"
            raise InvalidOption("length", f"must be up to {kept // DAY} days{words}, and more than none")
        return micros


async def read_course(store: Store, asked: Asked, length: Micros) -> Course:
    """What the coordinator sampled, put together into points."""
    now = (await store.stats.recent(1)).now
    window, width = framed(now, length, None if asked.step is None else STEPS[asked.step], asked.points)
    plot = Plot(msgspec.structs.replace(window, queue=asked.queue, type=asked.type), width, asked.by)
    for piece in plot.pieces():
        plot.add(await store.stats.course(piece))
    return plot.course()
