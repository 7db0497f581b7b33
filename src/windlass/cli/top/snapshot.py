"""What `top` shows at one moment, as records; `--json` prints these."""

from datetime import datetime

import msgspec

from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.stats.meter import INTERVAL, RATE_WINDOW, Recent, interval_of
from windlass.core.stats.recent_stats import RecentStats, recent_stats
from windlass.core.stats.samples import HOUR
from windlass.core.stats.timeline import Timeline
from windlass.core.status import Status
from windlass.observe.alerts import Alert, AlertFacts, find_alerts
from windlass.store.open import redact
from windlass.store.records import WorkerInfo

INTERVALS = 60
HOUR_POINTS = 30
MAX_FAILURES = 20


class QueueLine(msgspec.Struct, frozen=True, kw_only=True):
    """One queue."""

    queue: str
    paused: bool
    closed: bool = False
    jobs: dict[str, int]
    """By status."""
    oldest: float | None
    """Seconds that the oldest pending job has waited."""
    rates: RecentStats
    completed: list[int]
    """Completed in each interval of the last minutes, oldest first."""
    hour: list[int | None] = []
    """Completed in each two minutes of the last hour, as sampled; None where not sampled."""


class TypeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One type, over all queues."""

    type: str
    rates: RecentStats
    completed: list[int]


class FailureLine(msgspec.Struct, frozen=True, kw_only=True):
    """A job that failed or died recently."""

    id: str
    type: str
    queue: str
    status: Status
    attempt: int
    at: datetime
    error: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    store: str
    at: datetime
    """By the store's clock."""
    totals: dict[str, int]
    per_second: float
    """Completed, over all queues."""
    completed: list[int]
    interval_seconds: float
    """The length of an interval of `completed`."""
    queues: list[QueueLine]
    types: list[TypeLine]
    workers: list[WorkerInfo]
    failures: list[FailureLine]
    alerts: list[Alert] = []
    """The alerts of deploy/prometheus/rules.yml that would fire."""


class Hour:
    """The last hour: of each queue as a timeline, and what ended in it.

    Read again only when there may be a new interval: a live view refreshes every second.
    """

    def __init__(self) -> None:
        self._read: tuple[Micros, Timeline, Recent] | None = None

    def read(self, app: App, now: Micros) -> tuple[Timeline, Recent]:
        interval = interval_of(now)
        if self._read is None or self._read[0] != interval:
            length = HOUR / SECOND
            self._read = interval, app.stats.timeline(length, points=HOUR_POINTS), app.stats.recent(length)
        return self._read[1:]


def gather(app: App, hour: Hour | None = None) -> Snapshot:
    """Read the store. No query scans the finished jobs."""
    recent = app.stats.recent(INTERVALS * INTERVAL / SECOND)
    counts, workers = app.stats.counts(), app.workers.list()
    timeline, last_hour = (hour or Hour()).read(app, recent.now)
    queues = _queues(app, recent, counts.queues, timeline)
    return Snapshot(
        store=redact(app.store),
        at=to_datetime(recent.now),
        totals=counts.totals,
        per_second=recent.rate(RATE_WINDOW),
        completed=recent.completed_by_interval(INTERVALS),
        interval_seconds=INTERVAL / SECOND,
        queues=queues,
        types=[
            TypeLine(type=name, rates=recent_stats(part), completed=part.completed_by_interval(INTERVALS))
            for name, part in sorted(recent.by(lambda meter: meter.type).items())
        ],
        workers=workers,
        failures=[_failure(job) for job in app.jobs.failures(MAX_FAILURES)],
        alerts=_alerts(app, queues, workers, last_hour),
    )


def _alerts(app: App, queues: list[QueueLine], workers: list[WorkerInfo], last_hour: Recent) -> list[Alert]:
    coordinator, parked_types = app._portal().run(_fleet(app))
    facts = AlertFacts(
        oldest={each.queue: each.oldest for each in queues if each.oldest is not None},
        paused={each.queue for each in queues if each.paused},
        pending=sum(each.jobs.get("pending", 0) for each in queues if not each.paused),
        workers=workers,
        coordinator=coordinator,
        parked_types=parked_types,
        schedules=app.schedules.list(),
        recent=last_hour,
    )
    return find_alerts(facts)


async def _fleet(app: App) -> tuple[str | None, list[str]]:
    """The coordinator, and the types of parked jobs."""
    store = await app._ready()
    return await store.leader.current(), await store.jobs.parked_types()


def _queues(app: App, recent: Recent, jobs: dict[str, dict[str, int]], hour: Timeline) -> list[QueueLine]:
    parts, oldest = recent.by(lambda meter: meter.queue), app.stats.oldest()
    nothing = Recent(recent.now, ())
    none: dict[str, int] = dict.fromkeys(map(str, Status), 0)
    return [
        QueueLine(
            queue=queue.name,
            paused=queue.paused,
            closed=queue.closed,
            jobs=jobs.get(queue.name, none),
            oldest=oldest.get(queue.name),
            rates=recent_stats(parts.get(queue.name, nothing)),
            completed=parts.get(queue.name, nothing).completed_by_interval(INTERVALS),
            hour=_hour(hour, queue.name),
        )
        for queue in app.queues.list()
    ]


def _hour(timeline: Timeline, queue: str) -> list[int | None]:
    """A queue without samples had no jobs whenever they were counted."""
    if line := timeline.series.get(queue):
        return [None if point is None else point.completed for point in line.points]
    return [None if point is None else 0 for point in timeline.all.points]


def _failure(job: Job) -> FailureLine:
    said = f"{job.error.type}: {job.error.message}" if job.error else job.reason or ""
    return FailureLine(
        id=job.id,
        type=job.type,
        queue=job.queue,
        status=job.status,
        attempt=job.attempt,
        at=job.finished_at or job.updated_at,
        error=" ".join(said.split()),
    )
