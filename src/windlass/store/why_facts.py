"""The facts about a waiting job, built from a store's rows: the same rows in every store."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import msgspec

from windlass.core.flow.queue import Queue
from windlass.core.flow.rate import Bucket
from windlass.core.jobs.change import WAITING_FOR_KEY
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros
from windlass.core.stats.meter import METER_RETENTION, Histogram, interval_of
from windlass.core.status import Status
from windlass.core.why.estimate import LATELY
from windlass.core.why.facts import (
    MAX_AHEAD,
    MAX_AHEAD_FOR_KEY,
    MAX_NAMED,
    MAX_TENANTS,
    Holder,
    QueuePosition,
    Throughput,
    WorkerSummary,
    counted,
)
from windlass.store.records import WorkerInfo
from windlass.store.rows import histogram_of

BOUNDS = {
    "most_ahead": MAX_AHEAD + 1,
    "most_in_line": MAX_AHEAD_FOR_KEY + 1,
    "most_tenants": MAX_TENANTS,
    "most_named": MAX_NAMED,
}
"""Limits of the statements: one more than is counted, to know whether there are more."""


class SortKey(msgspec.Struct, frozen=True):
    """A row of sort_priority and rank: a live job's claim order in its queue."""

    sort_priority: int
    rank: Micros


def values_of(job: Job, queue: Queue, standing: SortKey, now: Micros) -> dict[str, Any]:
    """The parameters of the statements about a waiting job. One that is not pending would come last."""
    return {
        "id": job.id,
        "queue": job.queue,
        "key": job.concurrency_key,
        "sort_priority": standing.sort_priority,
        "rank": standing.rank if job.status is Status.PENDING else max(now, standing.rank),
        "line_rank": standing.rank,
        "order": 0 if job.key_strict else standing.sort_priority,
        "in_line": job.status is Status.BLOCKED and job.reason == WAITING_FOR_KEY,
        "fair": queue.rules.fair,
        "lane": job.tenant or "",
        **BOUNDS,
    }


def since(now: Micros) -> dict[str, Micros]:
    """The start of the meters for typical durations, and for throughput."""
    return {"hour": interval_of(now - METER_RETENTION), "lately": interval_of(now - LATELY)}


def position_of(row: Sequence[int], tenants: Iterable[Sequence[str]]) -> QueuePosition:
    """From the row of counts of `place.sql`, and the rows of `neighbours.sql`."""
    sooner, before, lane, beside, line, running, slots = row
    return QueuePosition(
        ahead=counted(sooner + before, MAX_AHEAD),
        higher_priority=counted(sooner, MAX_AHEAD),
        same_tenant=counted(lane, MAX_AHEAD),
        same_priority=counted(beside, MAX_AHEAD),
        ahead_for_key=counted(line, MAX_AHEAD_FOR_KEY),
        running=counted(running, MAX_AHEAD_FOR_KEY),
        slots=counted(slots, MAX_AHEAD_FOR_KEY),
        tenants=tuple(tenant for (tenant,) in tenants),
    )


def holders_of(rows: Iterable[Sequence[Any]]) -> tuple[Holder, ...]:
    """Rows of id, status, since when, run_at and runner."""
    return tuple(Holder(id_, Status(status), at, run_at, runner) for id_, status, at, run_at, runner in rows)


def buckets_of(rows: Iterable[Sequence[Any]]) -> dict[str, Bucket]:
    """Rows of key, credit, period and moment, by key."""
    return {key: Bucket(credit, period, at) for key, credit, period, at in rows}


def typical_duration_of(rows: Iterable[Sequence[Any]]) -> Histogram:
    """Rows of histograms, merged."""
    return reduce(Histogram.merge, (histogram_of(run) for (run,) in rows), Histogram())


def throughput_of(rows: Iterable[Sequence[Any]]) -> Throughput:
    """Rows of an interval's start and the attempts that ended in it."""
    return Throughput({slot: int(ended) for slot, ended in rows})


def workers_of(workers: Iterable[WorkerInfo], job: Job) -> WorkerSummary:
    alive = list(workers)
    know = [each for each in alive if job.type in each.types]
    fit = [each for each in know if job.queue in each.queues]
    able = [each for each in fit if not each.draining]
    return WorkerSummary(
        alive=len(alive),
        know=len(know),
        serve=sum(job.queue in each.queues for each in alive),
        able=len(able),
        draining=len(fit) - len(able),
        slots=sum(each.slots for each in able),
        busy=sum(each.busy for each in able),
    )
