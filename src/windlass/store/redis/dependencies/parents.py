"""New jobs with parents: one that could never run, or never get a result that it takes, is refused."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import ParentState, check_parents, with_existing_parents
from windlass.core.jobs.job import NewJob
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import by_queue
from windlass.store.redis.operator.queues import read_queues
from windlass.store.redis.operator.read_records import known_ids, read_anywhere
from windlass.store.redis.verbs.batch import to_batch
from windlass.store.redis.verbs.large_batch import portions


async def with_checked_parents(access: Access, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """The jobs as they are stored, with existing jobs instead of conflicting parents. Raises InvalidOption."""
    jobs = await _with_existing_parents(access, jobs)
    outside = await _outside_parents(access, jobs)
    without_results = await _queues_without_results(access, jobs, outside)
    try:
        check_parents(jobs, outside, without_results)
    except InvalidOption:
        # Jobs that are known, or that conflict with another job, are not checked.
        known = await known_ids(access, jobs) | (await _existing_holders(access, jobs)).keys()
        if not known:
            raise
        outside |= {job.id: ParentState(Status.BLOCKED, job.queue) for job in jobs if job.id in known}
        check_parents([job for job in jobs if job.id not in known], outside, without_results)
    return jobs


async def _with_existing_parents(access: Access, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """If another job has the key of a parent in the same call, the children wait for that job."""
    awaited = {parent for job in jobs for parent in job.parents}
    if not any(job.id in awaited and job.idempotency_key is not None for job in jobs):
        return jobs
    existing = await _existing_holders(access, jobs)
    return [with_existing_parents(job, existing) for job in jobs] if existing else jobs


async def _existing_holders(access: Access, jobs: Sequence[NewJob]) -> dict[JobId, JobId]:
    """By new job: the existing job that has its key."""
    keyed = [
        msgspec.structs.replace(job, parents=(), result_params=()) for job in jobs if job.idempotency_key is not None
    ]
    existing: dict[JobId, JobId] = {}
    for queue, mine in by_queue(keyed, lambda job: job.queue).items():
        for portion in portions(mine):
            batch = to_batch(portion)
            reply = (await access.call_queues("check_enqueue", {queue: (batch.request, *batch.blobs)}))[queue]
            answers = zip(portion, batch.answers(reply), strict=True)
            existing |= {job.id: answer.id for job, answer in answers if answer.id != job.id}
    return existing


async def _outside_parents(access: Access, jobs: Sequence[NewJob]) -> dict[JobId, ParentState]:
    """The states of parents that are not in the same call."""
    here = {job.id for job in jobs}
    wanted = dict.fromkeys(parent for job in jobs for parent in job.parents if parent not in here)
    if not wanted:
        return {}
    seen = (await read_anywhere(access, wanted)).jobs
    return {id_: ParentState(each.record.status, each.queue) for id_, each in seen.items()}


async def _queues_without_results(
    access: Access, jobs: Sequence[NewJob], outside: Mapping[JobId, ParentState]
) -> set[str]:
    """Queues that keep no completed jobs, among those whose results are needed."""
    if not any(job.result_params for job in jobs):
        return set()
    queue_of = {job.id: job.queue for job in jobs} | {id_: source.queue for id_, source in outside.items()}
    wanted = {queue_of[parent] for job in jobs for _, parent in job.result_params if parent in queue_of}
    kept = await read_queues(access, await _existing(access, wanted))
    return {name for name, each in kept.items() if each.queue.rules.retention[Status.COMPLETED] == 0}


async def _existing(access: Access, queues: Iterable[str]) -> list[str]:
    """The queues that exist: reading the others would create them."""
    wanted = set(queues)
    if not wanted <= access.server.known_queues:
        wanted &= set(await access.queue_names())
    return sorted(wanted)
