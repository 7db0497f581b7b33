"""Payloads and results too large for a row, on the client: offloaded before the enqueue, fetched afterwards."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from windlass.blobs.contract import BlobFailed, BlobStore
from windlass.blobs.offload import Offload, off_loop, unavailable
from windlass.core.codec import INLINE_LIMIT, check_size, decode, size_of
from windlass.core.ids import JobId
from windlass.core.jobs.job import Enqueued, Job, NewJob
from windlass.core.reference import Reference
from windlass.errors import BlobUnavailable, EnqueueFailed, KeyConflict, StoreUnusable
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Transition

_SURELY_INLINE = INLINE_LIMIT // 4
NO_BLOBS = "this app has no blob store: give it the same blobs=... (or WINDLASS_BLOBS) as the process that stored it"


def are_inline(jobs: Sequence[NewJob]) -> bool:
    """Whether every payload fits into its row, as nearly all do."""
    # A character is at most four bytes: short texts need not be encoded.
    long = [job for job in jobs if len(job.payload) > _SURELY_INLINE]
    return not any(size_of(job.payload) > INLINE_LIMIT for job in long) if long else True


async def enqueue_large(
    blobs: Offload | None,
    jobs: Sequence[NewJob],
    limit: int,
    enqueue: Callable[[Sequence[NewJob]], Awaitable[list[Enqueued]]],
) -> list[Enqueued]:
    """Enqueue jobs of which some are large. Their payloads are durable before the jobs are.

    Unused blobs are removed only where it is certain that no row refers to them; the coordinator's sweep removes the
    rest.
    """
    for job in jobs:
        check_size(job.payload, "payload", limit)
    if blobs is None:
        return await enqueue(jobs)
    offloaded = await _offload_all(blobs, jobs)
    try:
        answers = await enqueue([offloaded.get(i, job) for i, job in enumerate(jobs)])
    except (EnqueueFailed, KeyConflict, StoreUnusable):
        # No row can refer to them; after an interrupt, for example, one may.
        await _take_back(blobs, list(offloaded.values()))
        raise
    # An answer with the job's own id may come from a row that this call wrote, and that refers to this blob.
    await _take_back(blobs, [job for i, job in offloaded.items() if answers[i].id != job.id])
    return answers


async def _offload_all(blobs: Offload, jobs: Sequence[NewJob]) -> dict[int, NewJob]:
    """References for the large payloads, by index: all are stored or none."""
    done: dict[int, NewJob] = {}

    def put(index: int) -> None:
        job = jobs[index]
        done[index] = msgspec.structs.replace(job, payload=blobs.keep(job.id, "payload", job.payload))

    try:
        await off_loop(put, [i for i, job in enumerate(jobs) if size_of(job.payload) > INLINE_LIMIT])
    except BlobUnavailable as error:
        await _take_back(blobs, list(done.values()))
        raise EnqueueFailed(f"nothing was stored: {error}") from error
    return done


async def _take_back(blobs: Offload, jobs: Sequence[NewJob]) -> None:
    if jobs:
        await off_loop(lambda job: blobs.take_back(job.id, job.payload), jobs)


async def offload_payload(blobs: Offload | None, job: JobId, text: str) -> str:
    """The payload to write into the row of an existing job. Raises BlobUnavailable."""
    if blobs is None or size_of(text) <= INLINE_LIMIT:
        return text
    return (await off_loop(lambda each: blobs.keep(job, "payload", each), [text]))[0]


async def value_of(blobs: Offload | None, job: JobId, reference: Reference) -> Any:
    """The value of a reference. Raises BlobUnavailable."""
    if blobs is None:
        raise unavailable(job, reference, NO_BLOBS)
    (text,) = await off_loop(lambda wanted: blobs.fetch(job, wanted), [reference])
    return decode(text)


async def with_values(blobs: Offload | None, job: Job) -> Job:
    """The job with its references replaced by values, or by the problem with fetching them."""
    for name in ("payload", "result"):
        if isinstance(reference := getattr(job, name), Reference):
            try:
                value = await value_of(blobs, job.id, reference)
            except BlobUnavailable as error:
                value = {**reference.shown, "problem": error.problem}
            job = msgspec.structs.replace(job, **{name: value})
    return job


def without_values(job: Job) -> Job:
    """The job with its references in their public form."""
    if isinstance(job.payload, Reference):
        job = msgspec.structs.replace(job, payload=job.payload.shown)
    if isinstance(job.result, Reference):
        job = msgspec.structs.replace(job, result=job.result.shown)
    return job


async def drop_blobs(operator: OperatorStore, blobs: Offload | None, moved: Sequence[Transition | None]) -> None:
    """Remove the blobs of jobs that were just deleted; the sweep removes what cannot be removed now."""
    gone = [each.id for each in moved if each is not None and each.done]
    if blobs is not None and gone:
        try:
            await drop_unused(operator, blobs.store, gone)
        except BlobFailed:
            return


MAX_CHILDREN = 100
"""Per page."""


async def drop_unused(operator: OperatorStore, blobs: BlobStore, gone: Sequence[JobId]) -> None:
    """Remove the blobs of dropped jobs; those that a link refers to are left to the sweep. Raises BlobFailed."""
    (holding,) = await off_loop(blobs.holding, [gone])
    needless = [job for job in holding if not await is_needed_by_link(operator, job)]
    if needless:
        await off_loop(blobs.drop, [needless])


async def is_needed_by_link(operator: OperatorStore, job: JobId) -> bool:
    """Whether a later link of this job's chain is kept."""
    page = await operator.list(JobFilter(parent=job), MAX_CHILDREN, None)
    while page.next_cursor is not None and not _is_link(page.items, job):
        page = await operator.list(JobFilter(parent=job), MAX_CHILDREN, page.next_cursor)
    return _is_link(page.items, job)


def _is_link(children: Sequence[Job], job: JobId) -> bool:
    """Whether one of them is a dependent; children that were enqueued by it have no use for its result."""
    return any(job in child.parents for child in children)
