"""The facts about a job from which core/why/explain.py explains why it does not run, and when it may.

They are read one after the other without a lock, and counts are bounded.
"""

from collections.abc import Collection

import msgspec

from windlass.core.flow.queue import Queue
from windlass.core.flow.rate import Rate, TokenBucket, full, parse_rate, refilled
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros
from windlass.core.stats.meter import INTERVAL, Histogram, interval_of
from windlass.core.status import Status
from windlass.errors import InvalidOption

MAX_AHEAD = 10_000
"""Max count of the jobs ahead of it in its queue."""
MAX_AHEAD_FOR_KEY = 1_000
"""Max count of the jobs ahead of it for its key, and of the running jobs of its queue."""
MAX_TENANTS = 100
"""Max listed other tenants."""
MAX_NAMED = 5
"""Max listed jobs that hold what it waits for."""


class Count(msgspec.Struct, frozen=True):
    """A number of jobs, or a lower bound."""

    jobs: int = 0
    at_least: bool = False

    def __str__(self) -> str:
        return f"{self.jobs:,}{'+' if self.at_least else ''}"


def counted(jobs: int, most: int) -> Count:
    """A count that was stopped at one more than `most`."""
    return Count(min(jobs, most), at_least=jobs > most)


class Holder(msgspec.Struct, frozen=True):
    """A job that holds what another waits for."""

    id: JobId
    status: Status
    since: Micros
    """When it was claimed; for a job that does not run, when it got its status."""
    run_at: Micros
    runner: str | None = None


class QueuePosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a waiting job: in its queue, for its key, and among its tenant's jobs."""

    ahead: Count = Count()
    """Pending jobs of its queue that precede it, or would if it became pending now."""
    higher_priority: Count = Count()
    """Of those, jobs with a higher priority: in a fair queue these come first, whatever their tenant."""
    same_tenant: Count = Count()
    """In a fair queue: jobs of its tenant ahead of it at its priority."""
    same_priority: Count = Count()
    """In a fair queue: all jobs waiting at its priority."""
    ahead_for_key: Count = Count()
    """Jobs ahead of it that wait for its key."""
    running: Count = Count()
    """Running jobs of its queue."""
    slots: Count = Count()
    """Jobs that hold a slot of its key."""
    tenants: tuple[str, ...] = ()
    """In a fair queue: the tenants waiting at its priority."""


class WorkerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The live workers, counted by what they can do for a job."""

    alive: int = 0
    know: int = 0
    """Workers that know its type."""
    serve: int = 0
    """Workers that serve its queue."""
    able: int = 0
    """Workers that do both and are not draining."""
    draining: int = 0
    """Workers that do both but are draining."""
    slots: int = 0
    """Slots of the able workers."""
    busy: int = 0
    """Busy slots of the able workers, by jobs of any queue."""


class Throughput(msgspec.Struct, frozen=True):
    """How many attempts of its queue ended recently, by interval."""

    ended: dict[Micros, int] = {}

    def over(self, now: Micros, length: Micros) -> "Measured":
        """How many attempts ended, and in which time.

        Counts whole intervals where possible, without the current one and the one in which the work began. Without a
        whole interval, the work is assumed to have begun in the middle of its first one.
        """
        current, start = interval_of(now), interval_of(now - length)
        recent = {slot: jobs for slot, jobs in self.ended.items() if start <= slot <= now and jobs > 0}
        if not recent:
            return Measured()
        first = min(recent)
        begin = first if self.ended.get(first - INTERVAL) else first + INTERVAL
        if begin < current:
            return Measured(sum(jobs for slot, jobs in recent.items() if begin <= slot < current), current - begin)
        within = min(INTERVAL, now - first) // 2
        return Measured(sum(recent.values()), max(now - first - within, SECOND), guessed=True)

    def best(self) -> float:
        """The most attempts that ended in an interval, per microsecond."""
        return max(self.ended.values(), default=0) / INTERVAL


class Measured(msgspec.Struct, frozen=True):
    """A number of jobs in a length of time."""

    jobs: int = 0
    time: Micros = 0
    guessed: bool = False
    """Whether the time is a guess, right to a factor of two."""

    @property
    def rate(self) -> float:
        """Jobs per microsecond."""
        return self.jobs / self.time if self.time else 0.0


class WhyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A job and everything that may delay it."""

    now: Micros
    job: Job
    queue: Queue
    worker: str | None = None
    """The worker whose runner holds it."""
    position: QueuePosition = QueuePosition()
    parents: tuple[Holder, ...] = ()
    """Its parents, as far as they are kept; unfinished ones first."""
    cause: Job | None = None
    """The job that caused its cancellation; for a waiting link, the current job of its chain."""
    runners: tuple[Holder, ...] = ()
    """The longest-running jobs of its queue."""
    holders: tuple[Holder, ...] = ()
    """The jobs with the slots of its key."""
    queue_token_bucket: TokenBucket | None = None
    key_token_bucket: TokenBucket | None = None
    workers: WorkerSummary = WorkerSummary()
    typical_duration: Histogram = Histogram()
    """Durations of attempts of its type in its queue, in the last hour."""
    throughput: Throughput = Throughput()
    next_tick: Micros | None = None
    """The next tick of its schedule, if any."""

    @property
    def named(self) -> tuple[JobId, ...]:
        """Other jobs that an explanation may name; not its parents, which are part of the job."""
        cause = () if self.cause is None else (self.cause.id,)
        return (*cause, *(each.id for each in (*self.holders, *self.runners)))

    def naming(self, ids: Collection[JobId]) -> "WhyFacts":
        """Keep the names of these other jobs; the rest are only counted."""
        return msgspec.structs.replace(
            self,
            cause=self.cause if self.cause is not None and self.cause.id in ids else None,
            holders=tuple(each for each in self.holders if each.id in ids),
            runners=tuple(each for each in self.runners if each.id in ids),
        )

    def without_note(self) -> "WhyFacts":
        """Without the note that the handler wrote with its progress."""
        return msgspec.structs.replace(self, job=self.job.without_note())

    @property
    def key_rate(self) -> Rate | None:
        """The rate of its key; None if the row was edited by hand and it is invalid."""
        try:
            return None if self.job.key_rate is None else parse_rate(self.job.key_rate, "key_rate")
        except InvalidOption:
            return None

    @property
    def token_buckets(self) -> list[tuple[str, Rate, TokenBucket]]:
        """The token buckets whose tokens its start costs, of its queue and of its key, refilled."""
        rates = {
            "queue": (self.queue.rules.rate_limit, self.queue_token_bucket),
            "key": (self.key_rate, self.key_token_bucket),
        }
        return [
            (whose, rate, refilled(token_bucket or full(rate, self.now), rate, self.now))
            for whose, (rate, token_bucket) in rates.items()
            if rate is not None
        ]
