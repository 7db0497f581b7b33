"""The facts about a waiting job, built from a store's rows: the same rows in every store."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windlass.core.flow.queue import Queue
from windlass.core.jobs.change import WAITING_FOR_KEY
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.core.why.facts import (
    MAX_AHEAD,
    MAX_AHEAD_FOR_KEY,
    MAX_NAMED,
    MAX_TENANTS,
    QueuePosition,
    WorkerSummary,
    counted,
)
from windlass.store.records import WorkerInfo

BOUNDS = {
    "max_ahead": MAX_AHEAD + 1,
    "max_for_key": MAX_AHEAD_FOR_KEY + 1,
    "max_tenants": MAX_TENANTS,
    "max_named": MAX_NAMED,
}
"""Limits of the statements: one more than is counted, to know whether there are more."""


class SortKey(msgspec.Struct, frozen=True):
    """A row of sort_priority and rank: a live job's claim order in its queue."""

    sort_priority: int
    rank: Micros


def values_of(job: Job, queue: Queue, sort_key: SortKey, now: Micros) -> dict[str, Any]:
    """The parameters of the statements about a waiting job. One that is not pending would come last."""
    return {
        "id": job.id,
        "queue": job.queue,
        "key": job.concurrency_key,
        "sort_priority": sort_key.sort_priority,
        "rank": sort_key.rank if job.status is Status.PENDING else max(now, sort_key.rank),
        "key_rank": sort_key.rank,
        "key_priority": 0 if job.key_strict else sort_key.sort_priority,
        "waits_for_key": job.status is Status.BLOCKED and job.reason == WAITING_FOR_KEY,
        "fair": queue.rules.fair,
        "tenant_queue": job.tenant or "",
        **BOUNDS,
    }


def position_of(row: Sequence[int], tenants: Iterable[Sequence[str]]) -> QueuePosition:
    """From the rows of the statements `queue_position` and `waiting_tenants`."""
    higher_priority, before, same_tenant, same_priority, ahead_for_key, running, slots = row
    return QueuePosition(
        ahead=counted(higher_priority + before, MAX_AHEAD),
        higher_priority=counted(higher_priority, MAX_AHEAD),
        same_tenant=counted(same_tenant, MAX_AHEAD),
        same_priority=counted(same_priority, MAX_AHEAD),
        ahead_for_key=counted(ahead_for_key, MAX_AHEAD_FOR_KEY),
        running=counted(running, MAX_AHEAD_FOR_KEY),
        slots=counted(slots, MAX_AHEAD_FOR_KEY),
        tenants=tuple(tenant for (tenant,) in tenants),
    )


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
