"""Chains in one line each, all through the contract: links that are enqueued together, and what becomes of them."""

from typing import Any

import msgspec

from tests.support.key_queues import drain, take
from tests.support.seed import look, new_job, settle
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import parent_ended_reason, parent_results
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.store.contract import Store

TAKEN = "given"
"""The parameter of a link that gets the result before it."""


def links(count: int, **fields: Any) -> list[NewJob]:
    """The links of a chain, alike but for their order."""
    return follow_on([new_job(**fields) for _ in range(count)])


def follow_on(jobs: list[NewJob]) -> list[NewJob]:
    """These jobs, each after the one before it."""
    found = jobs[:1]
    for job in jobs[1:]:
        found.append(after(job, found[-1].id))
    return found


def after(job: NewJob, parent: JobId) -> NewJob:
    """The job as a child of this one, whose result it takes."""
    return msgspec.structs.replace(job, parent=parent, parents=(parent,), result_params=((TAKEN, parent),))


async def enqueue_jobs(store: Store, jobs: list[NewJob]) -> list[JobId]:
    """All in one call; the ids of those that stand."""
    return [each.id for each in await store.jobs.enqueue(jobs)]


async def chain(store: Store, count: int = 3, **fields: Any) -> list[JobId]:
    """Enqueue a chain of links that are alike."""
    return await enqueue_jobs(store, links(count, **fields))


async def take_one(store: Store, **fields: Any) -> Claimed:
    """The one job that may run now."""
    (job,) = await take(store, **fields)
    return job


async def end_next(store: Store, ending: Any, **fields: Any) -> Claimed:
    """Run the one job that may run now, and end it so."""
    job = await take_one(store, **fields)
    settlement: Settlement = ending(job)
    await settle(store, settlement)
    return job


async def statuses(store: Store, ids: list[JobId]) -> list[Status]:
    """Of jobs that must be there."""
    return [(await look(store, id_)).status for id_ in ids]


async def reasons(store: Store, ids: list[JobId]) -> list[str | None]:
    """Of jobs that must be there."""
    return [(await look(store, id_)).reason for id_ in ids]


def fallen(ids: list[JobId], first: Status) -> list[str]:
    """The reasons of all links after the first, which ended so."""
    how = [first, *[Status.CANCELLED] * len(ids)]
    return [parent_ended_reason(id_, status) for id_, status in zip(ids[:-1], how, strict=False)]


def given(job: Claimed) -> str | None:
    """The result that a link got, as JSON."""
    if job.result_params is None:
        return None
    return parent_results(job.result_params, job.parent_results)[TAKEN][1]


async def run_out(store: Store, **fields: Any) -> list[JobId]:
    """Run all that is left, one after the other: the order in which they ran."""
    return await drain(store, **fields)
