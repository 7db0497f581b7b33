"""app.workers and app.stats; each verb also with the prefix `a`."""

from typing import Literal, get_args

import msgspec

from windlass.client.runtime.portal import blocking
from windlass.client.verbs.filters import TaskType, type_name
from windlass.client.verbs.group import Verbs
from windlass.core.moments import DAY, SECOND, Duration, Micros, duration
from windlass.core.names import check_name
from windlass.core.own_types import without_own
from windlass.core.stats.meter import METER_RETENTION, Recent, SumBy
from windlass.core.stats.samples import HOUR, MINUTE, SAMPLE_RETENTION
from windlass.core.stats.timeline import By, Timeline, Times, sample_window
from windlass.core.stats.timeline_builder import TimelineBuilder
from windlass.errors import InvalidOption
from windlass.store.contract import Store
from windlass.store.records import Counts, WorkerInfo

Step = Literal["minute", "hour"]
STEPS: dict[str, Micros] = {"minute": MINUTE, "hour": HOUR}
MAX_POINTS = 10_080
"""A week of minutes: no timeline has more steps."""


class TimelineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a timeline, as given."""

    length: Duration
    by: By
    step: Step | None
    points: int | None
    queue: str | None
    type: str | None
    times: Times = "both"

    def check(self) -> Micros:
        """Check the options and return the length."""
        if self.by not in get_args(By):
            raise InvalidOption("by", f"{self.by!r:.100} is not one of {', '.join(get_args(By))}")
        if self.step is not None and self.step not in STEPS:
            raise InvalidOption("step", f"{self.step!r:.100} is not one of {', '.join(STEPS)}")
        if self.times not in get_args(Times):
            raise InvalidOption("times", f"{self.times!r:.100} is not one of {', '.join(get_args(Times))}")
        whole = isinstance(self.points, int) and not isinstance(self.points, bool)
        if self.points is not None and not (whole and 1 <= self.points <= MAX_POINTS):
            raise InvalidOption("points", f"must be a whole number from 1 to {MAX_POINTS}, not {self.points!r:.100}")
        check_names(self.queue, self.type)
        return self._length()

    def _length(self) -> Micros:
        micros = duration(self.length, "length")
        kept = SAMPLE_RETENTION[HOUR if self.step is None else STEPS[self.step]]
        if not 0 < micros <= kept:
            words = "" if self.step is None else f" by the {self.step}"
            raise InvalidOption("length", f"must be up to {kept // DAY} days{words}, and more than none")
        return micros


def check_names(queue: str | None, type_: TaskType | None) -> str | None:
    """Check the names of a queue and a type, and return that of the type."""
    name = None if type_ is None else type_name(type_)
    for field, value in (("queue", queue), ("type", name)):
        if value is not None:
            check_name(value, field)
    return name


def check_recent(length: Duration, by: SumBy | None) -> Micros:
    """A length of time that meters are kept for; `by` is checked too."""
    if by is not None and by not in get_args(SumBy):
        raise InvalidOption("by", f"{by!r:.100} is not one of {', '.join(get_args(SumBy))}")
    micros = duration(length, "length")
    if not 0 < micros <= METER_RETENTION:
        raise InvalidOption("length", f"must be up to {METER_RETENTION // SECOND} seconds, and more than none")
    return micros


async def read_timeline(store: Store, asked: TimelineOptions, length: Micros) -> Timeline:
    """The samples of the coordinator as a timeline."""
    now = (await store.stats.recent(1)).now
    window, width = sample_window(now, length, None if asked.step is None else STEPS[asked.step], asked.points)
    # Of one queue or type there are few; all others are read as sums.
    by = asked.by if asked.queue is None and asked.type is None else None
    window = msgspec.structs.replace(window, queue=asked.queue, type=asked.type, times=asked.times, by=by)
    builder = TimelineBuilder(window, width, asked.by)
    for piece in builder.pieces():
        builder.add(await store.stats.samples(piece))
    return builder.build()


class Workers(Verbs):
    """The workers of the store."""

    async def alist(self) -> list[WorkerInfo]:
        """The live workers, with the types of their apps: Windlass's own types are left out."""
        store = await self._home._ready()
        found = await store.workers.list()
        return [msgspec.structs.replace(each, types=without_own(each.types)) for each in found]

    list = blocking(alist)


class Stats(Verbs):
    """Statistics of the store."""

    async def acounts(self) -> Counts:
        """Jobs by queue and status, exact."""
        store = await self._home._ready()
        return await store.operator.counts()

    async def arecent(
        self,
        length: Duration = 300,
        *,
        queue: str | None = None,
        type: TaskType | None = None,
        by: SumBy | None = None,
    ) -> Recent:
        """What ended recently, at most in the last hour, of one queue, one type or all: by interval, queue and type.

        `by="queue"` or `by="type"` reads two sums of each: of the last 20 to 30 seconds, and of the time before.
        Statistics, not a ledger: runners write them every two seconds, and a runner that dies loses the last ones.
        """
        micros, name = check_recent(length, by), check_names(queue, type)
        store = await self._home._ready()
        return await store.stats.recent(micros, queue, name, by)

    async def aoldest(self) -> dict[str, float]:
        """The longest wait of a pending job in seconds, by queue."""
        store = await self._home._ready()
        return {queue: micros / SECOND for queue, micros in (await store.stats.oldest()).items()}

    async def atimeline(
        self,
        length: Duration = 6 * 3600,
        *,
        by: By = "queue",
        step: Step | None = None,
        points: int | None = None,
        queue: str | None = None,
        type: TaskType | None = None,
        times: Times = "both",
    ) -> Timeline:
        """Statistics over a length of time for each queue or type, as sampled by the coordinator.

        By the minute for 7 days, by the hour for 400; `points` merges neighbours until there are at most that many.
        The current minute, and one that is being sampled, are not included. `by="all"` makes only the sum; `times`
        is "both", "wait", "run", or "none" for counts of attempts alone. Each saves much of the work where there
        are very many types.
        """
        name = None if type is None else type_name(type)
        asked = TimelineOptions(length=length, by=by, step=step, points=points, queue=queue, type=name, times=times)
        micros = asked.check()
        return await read_timeline(await self._home._ready(), asked, micros)

    counts = blocking(acounts)
    recent = blocking(arecent)
    oldest = blocking(aoldest)
    timeline = blocking(atimeline)
