"""The circumstances of a job, put together from the rows that a store reads: the same rows in every store."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import msgspec

from windlass.core.change import IN_LINE
from windlass.core.circumstances import (
    MOST_AHEAD,
    MOST_IN_LINE,
    MOST_NAMED,
    MOST_TENANTS,
    Crew,
    Holder,
    Pace,
    Place,
    counted,
)
from windlass.core.estimate import LATELY
from windlass.core.job import Job
from windlass.core.meter import KEPT, Histogram, slot_of
from windlass.core.moments import Micros
from windlass.core.queue import Queue
from windlass.core.rate import Bucket
from windlass.core.status import Status
from windlass.store.meters import histogram_of
from windlass.store.records import WorkerInfo

BOUNDS = {
    "most_ahead": MOST_AHEAD + 1,
    "most_in_line": MOST_IN_LINE + 1,
    "most_tenants": MOST_TENANTS,
    "most_named": MOST_NAMED,
}
"""How far statements look: one further than people care, so that they know when there is more."""


class Standing(msgspec.Struct, frozen=True):
    """A row of urgency and rank: where a live job stands in the order of its queue."""

    urgency: int
    rank: Micros


def values_of(job: Job, queue: Queue, standing: Standing, now: Micros) -> dict[str, Any]:
    """What the statements about a waiting job are asked with. One that is not pending would come last."""
    return {
        "id": job.id,
        "queue": job.queue,
        "key": job.concurrency_key,
        "urgency": standing.urgency,
        "rank": standing.rank if job.status is Status.PENDING else max(now, standing.rank),
        "line_rank": standing.rank,
        "order": 0 if job.key_strict else standing.urgency,
        "in_line": job.status is Status.BLOCKED and job.reason == IN_LINE,
        "fair": queue.rules.fair,
        "lane": job.tenant or "",
        **BOUNDS,
    }


def since(now: Micros) -> dict[str, Micros]:
    """From when on meters tell of the usual time, and of the pace."""
    return {"hour": slot_of(now - KEPT), "lately": slot_of(now - LATELY)}


def place_of(row: Sequence[int], tenants: Iterable[Sequence[str]]) -> Place:
    """From the row of counts that `place.sql` gives, and the rows of `neighbours.sql`."""
    sooner, before, lane, beside, line, running, slots = row
    return Place(
        ahead=counted(sooner + before, MOST_AHEAD),
        sooner=counted(sooner, MOST_AHEAD),
        lane=counted(lane, MOST_AHEAD),
        beside=counted(beside, MOST_AHEAD),
        line=counted(line, MOST_IN_LINE),
        running=counted(running, MOST_IN_LINE),
        slots=counted(slots, MOST_IN_LINE),
        tenants=tuple(tenant for (tenant,) in tenants),
    )


def holders_of(rows: Iterable[Sequence[Any]]) -> tuple[Holder, ...]:
    """Rows of id, status, since when, run_at and runner."""
    return tuple(Holder(id_, Status(status), at, run_at, runner) for id_, status, at, run_at, runner in rows)


def buckets_of(rows: Iterable[Sequence[Any]]) -> dict[str, Bucket]:
    """Rows of key, credit, period and moment, by key."""
    return {key: Bucket(credit, period, at) for key, credit, period, at in rows}


def usual_of(rows: Iterable[Sequence[Any]]) -> Histogram:
    """Rows of histograms, as one."""
    return reduce(Histogram.merge, (histogram_of(run) for (run,) in rows), Histogram())


def pace_of(rows: Iterable[Sequence[Any]]) -> Pace:
    """Rows of a slot of time and what ended in it."""
    return Pace({slot: int(ended) for slot, ended in rows})


def crew_of(workers: Iterable[WorkerInfo], job: Job) -> Crew:
    """The live workers, as they concern this job."""
    alive = list(workers)
    know = [each for each in alive if job.type in each.types]
    fit = [each for each in know if job.queue in each.queues]
    able = [each for each in fit if not each.draining]
    return Crew(
        alive=len(alive),
        know=len(know),
        serve=sum(job.queue in each.queues for each in alive),
        able=len(able),
        draining=len(fit) - len(able),
        slots=sum(each.slots for each in able),
        busy=sum(each.busy for each in able),
    )
