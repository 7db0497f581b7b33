"""Counts, samples over time, and one number for scalers."""

import itertools
from typing import Any

import msgspec

from windlass.client.verbs.stats import Step
from windlass.core.moments import MAX_DURATION, SECOND
from windlass.core.stats.meter import Recent, SumBy
from windlass.core.stats.scale import Scale, scale
from windlass.core.stats.timeline import By, Timeline, Times
from windlass.core.status import Status
from windlass.server.api.job_list import CountQuery
from windlass.server.operation import Answer, Call, OutsideLimits, reads
from windlass.store.clock import since_boot

COUNT_SECONDS = 5.0
MAX_COUNT = 100_000


class StatsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`since` asks for the samples, `recent` for the meters, of this many seconds up to now: of one queue, of one
    type, or of all.
    """

    since: float | None = None
    recent: float | None = None
    by: By = "queue"
    step: Step | None = None
    points: int = 120
    queue: str | None = None
    type: str | None = None
    times: Times = "both"
    """Which times the samples have: decoding them is most of the work. "none" leaves out numbers of jobs too."""
    recent_by: SumBy | None = None
    """`recent` as two sums of each queue or type: of the last 20 to 30 seconds, and of the time before. No sums for a
    limited token.
    """


class StatsRecord(msgspec.Struct, kw_only=True):
    """Jobs by queue and status, and samples if they were asked for."""

    queues: dict[str, dict[str, int]]
    totals: dict[str, int]
    oldest: dict[str, float]
    """Seconds that the oldest pending job of a queue has waited."""
    timeline: Timeline | None = None
    recent: Recent | None = None


class ScaleQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The queues to add up; none: all."""

    queues: tuple[str, ...] = ()


class JobCountQuery(CountQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter, and where counting ends."""

    most: int = MAX_COUNT


class JobCount(msgspec.Struct):
    """How many jobs match: exactly, or at least `count` of them."""

    count: int
    exact: bool


async def count_jobs(call: Call) -> Answer:
    """How many jobs match a filter, counted up to a limit."""
    most = max(1, min(call.query.most, MAX_COUNT))
    rights, wanted, ends = call.caller.rights, call.query.wanted, since_boot() + COUNT_SECONDS * SECOND
    queues, types = _within_limits(wanted, "queue", rights.queues), _within_limits(wanted, "type", rights.types)
    count = 0
    for queue, type_ in itertools.product(queues, types):
        if since_boot() > ends:
            return Answer(JobCount(min(count, most), False))
        part = {**wanted, "queue": queue, "type": type_}
        count += await call.app.jobs.acount(most=max(0, most - count), **part)
    if set(wanted) <= {"status", "queue"} and not rights.types:
        return Answer(JobCount(count, True))  # the store keeps these counts
    return Answer(JobCount(min(count, most), count <= most))


def _within_limits(wanted: dict[str, Any], name: str, limits: frozenset[str]) -> list[str | None]:
    """The queues or types to count, one by one; None: any."""
    if name in wanted:
        return [wanted[name]] if not limits or wanted[name] in limits else []
    return [*sorted(limits)] if limits else [None]


async def get_stats(call: Call) -> Answer:
    """Counts by queue and status; with `since` the samples of that time, with `recent` its meters."""
    query: StatsQuery = call.query
    rights = call.caller.rights
    _check_counts(call)
    counts = (await call.app.stats.acounts()).queues
    queues = {name: jobs for name, jobs in counts.items() if rights.covers_queue(name)}
    oldest = {name: age for name, age in (await call.app.stats.aoldest()).items() if rights.covers_queue(name)}
    timeline = None
    if query.since is not None:
        _check_window(call)
        length = min(query.since, MAX_DURATION / SECOND)
        timeline = await call.app.stats.atimeline(
            length,
            by=query.by,
            step=query.step,
            points=query.points,
            queue=query.queue,
            type=query.type,
            times=query.times,
        )
    totals = {str(status): sum(jobs.get(status, 0) for jobs in queues.values()) for status in Status}
    record = StatsRecord(queues=queues, totals=totals, oldest=oldest, timeline=timeline)
    if query.recent is not None:
        by = None if rights.is_limited else query.recent_by  # sums cannot be cut down to the limits
        recent = await call.app.stats.arecent(query.recent, queue=query.queue, type=query.type, by=by)
        meters = tuple(each for each in recent.meters if rights.covers(each.queue, each.type))
        record.recent = msgspec.structs.replace(recent, meters=meters)
    return Answer(record)


def _check_window(call: Call) -> None:
    """Samples are sums: a limited token must name the queue or type that it is limited to."""
    rights, query = call.caller.rights, call.query
    if (rights.queues and query.queue is None) or (rights.types and query.type is None):
        raise OutsideLimits("this token is limited: name its queue, and its type, with since=")
    if query.queue is not None:
        call.caller.need_queue(query.queue)
    if query.type is not None and not rights.covers_type(query.type):
        raise OutsideLimits(f"this token is limited, and type {query.type!r} is not among what it may use")


def _check_counts(call: Call) -> None:
    if call.caller.rights.types:
        raise OutsideLimits("these counts are by queue, and this token is limited to types: ask /jobs/count")


async def get_scale(call: Call) -> Answer:
    """One number for scalers, and its parts."""
    _check_counts(call)
    rights, chosen = call.caller.rights, call.query.queues
    counts = (await call.app.stats.acounts()).queues
    seen = {name: jobs for name, jobs in counts.items() if rights.covers_queue(name)}
    return Answer(scale(seen, await call.app.queues.alist(), chosen))


OPERATIONS = (
    reads("/jobs/count", count_jobs, "How many jobs match", JobCount, JobCountQuery),
    reads("/stats", get_stats, "Counts, and samples over time", StatsRecord, StatsQuery),
    reads("/scale", get_scale, "One number for scalers", Scale, ScaleQuery),
)
