"""What a job finds itself among: the facts from which core/why.py tells why it does not run, and when it may.

Read without a lock, one after the other: each was true a moment ago, and none is counted further than people care.
"""

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.meter import SLOT, Histogram, slot_of
from windlass.core.moments import SECOND, Micros
from windlass.core.queue import Queue
from windlass.core.rate import Bucket, Rate, full, parse_rate, refilled
from windlass.core.status import Status
from windlass.errors import InvalidOption

MOST_AHEAD = 10_000
"""So far what waits before a job in its queue is counted."""
MOST_IN_LINE = 1_000
"""So far what is in line before it for its key is counted, and what runs in its queue."""
MOST_TENANTS = 100
"""So many tenants who wait beside it are named."""
MOST_NAMED = 5
"""So many of those who hold what it waits for are named."""


class Count(msgspec.Struct, frozen=True):
    """How many; if there was no end to it, at least so many."""

    jobs: int = 0
    at_least: bool = False

    def __str__(self) -> str:
        return f"{self.jobs:,}{'+' if self.at_least else ''}"


def counted(jobs: int, most: int) -> Count:
    """Of a count that stopped one after the most that people care for."""
    return Count(min(jobs, most), at_least=jobs > most)


class Holder(msgspec.Struct, frozen=True):
    """A job that has what another one waits for."""

    id: JobId
    status: Status
    since: Micros
    """When it was claimed; of one that does not run, since when it is as it is."""
    run_at: Micros
    runner: str | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a waiting job stands: in its queue, in the line of its key, in the lane of its tenant."""

    ahead: Count = Count()
    """Pending jobs of its queue that come before it, or would if it became pending now."""
    sooner: Count = Count()
    """Those of them that have a higher priority: in a fair queue these come first, whoever's they are."""
    lane: Count = Count()
    """In a fair queue: how many of its tenant's own come before it, at its priority."""
    beside: Count = Count()
    """In a fair queue: how many wait at its priority, whoever's they are."""
    line: Count = Count()
    """How many are before it in the line for its key."""
    running: Count = Count()
    """How many of its queue run."""
    slots: Count = Count()
    """How many have a slot of its key."""
    tenants: tuple[str, ...] = ()
    """In a fair queue: who else waits at its priority."""


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """The live workers, as they concern a job."""

    alive: int = 0
    know: int = 0
    """Know its type."""
    serve: int = 0
    """Serve its queue."""
    able: int = 0
    """Both, and do not drain."""
    draining: int = 0
    """Both, but take nothing more."""
    slots: int = 0
    """Of those that are able."""
    busy: int = 0
    """Slots of theirs that are in use, by jobs of whatever queue."""


class Pace(msgspec.Struct, frozen=True):
    """How many attempts of its queue ended lately, by the slot of time in which they did."""

    ended: dict[Micros, int] = {}

    def over(self, now: Micros, length: Micros) -> "Measured":
        """How many ended, and in how long a time.

        By whole slots where there are any: the one that is not over, and the one in which the work began, tell of
        less time than they last. Without, when it began within its first slot is anybody's guess: in the middle.
        """
        current, start = slot_of(now), slot_of(now - length)
        recent = {slot: jobs for slot, jobs in self.ended.items() if start <= slot <= now and jobs > 0}
        if not recent:
            return Measured()
        first = min(recent)
        begin = first if self.ended.get(first - SLOT) else first + SLOT
        if begin < current:
            return Measured(sum(jobs for slot, jobs in recent.items() if begin <= slot < current), current - begin)
        within = min(SLOT, now - first) // 2
        return Measured(sum(recent.values()), max(now - first - within, SECOND), guessed=True)

    def best(self) -> float:
        """The most that ended in a slot, by the microsecond."""
        return max(self.ended.values(), default=0) / SLOT


class Measured(msgspec.Struct, frozen=True):
    """So many in so long."""

    jobs: int = 0
    time: Micros = 0
    guessed: bool = False
    """Whether the time is a guess: right to a factor of two."""

    @property
    def rate(self) -> float:
        """By the microsecond."""
        return self.jobs / self.time if self.time else 0.0


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """A job and all that may hold it up."""

    now: Micros
    job: Job
    queue: Queue
    worker: str | None = None
    """Whose runner has it."""
    place: Place = Place()
    parents: tuple[Holder, ...] = ()
    """Whom it waits for, or waited for, as far as they are kept; those that have not ended first."""
    cause: Job | None = None
    """Because of which it was called off, if it was; of a link that waits: at which one its chain stands."""
    runners: tuple[Holder, ...] = ()
    """What has run longest in its queue."""
    holders: tuple[Holder, ...] = ()
    """Who has the slots of its key."""
    queue_bucket: Bucket | None = None
    key_bucket: Bucket | None = None
    crew: Crew = Crew()
    usual: Histogram = Histogram()
    """How long attempts of its type took in its queue, in the last hour."""
    pace: Pace = Pace()
    next_tick: Micros | None = None
    """Of the schedule that it comes from, if there is one that has another."""

    @property
    def key_rate(self) -> Rate | None:
        """Of its key; what somebody edited by hand into something else is none."""
        try:
            return None if self.job.key_rate is None else parse_rate(self.job.key_rate, "key_rate")
        except InvalidOption:
            return None

    @property
    def buckets(self) -> list[tuple[str, Rate, Bucket]]:
        """Whose tokens its start costs: of its queue and of its key, each as it is now."""
        rates = {"queue": (self.queue.rules.rate_limit, self.queue_bucket), "key": (self.key_rate, self.key_bucket)}
        return [
            (whose, rate, refilled(bucket or full(rate, self.now), rate, self.now))
            for whose, (rate, bucket) in rates.items()
            if rate is not None
        ]
