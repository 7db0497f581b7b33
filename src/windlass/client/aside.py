"""Payloads and results too large for a row, as a client meets them: put aside before a hand-in, fetched after."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from windlass.blobs.contract import BlobFailed
from windlass.blobs.offload import Offload, off_loop, unavailable
from windlass.client.bequest import drop_unneeded
from windlass.core.codec import INLINE_LIMIT, check_size, decode, size_of
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, Job, NewJob
from windlass.core.reference import Reference
from windlass.errors import BlobUnavailable, EnqueueFailed, KeyConflict, SchemaMismatch
from windlass.store.contract import OperatorStore
from windlass.store.records import Moved

_SURELY_INLINE = INLINE_LIMIT // 4
NO_BLOBS = "this app has no blob store: give it the same blobs=... (or WINDLASS_BLOBS) as whoever put it there"


def are_inline(jobs: Sequence[NewJob]) -> bool:
    """Whether every payload fits into its row, as nearly all do."""
    # A character is four bytes at most: for short texts there is nothing to count.
    return not any(len(job.payload) > _SURELY_INLINE and size_of(job.payload) > INLINE_LIMIT for job in jobs)


async def enqueue_large(
    blobs: Offload | None,
    jobs: Sequence[NewJob],
    limit: int,
    enqueue: Callable[[Sequence[NewJob]], Awaitable[list[Enqueued]]],
) -> list[Enqueued]:
    """Hand in jobs of which some are large. Their payloads are durable before the jobs are.

    What was put for nothing is taken back, but only where it is certain that no row refers to it: the sweep of the
    coordinator finds the rest.
    """
    for job in jobs:
        check_size(job.payload, "payload", limit)
    if blobs is None:
        return await enqueue(jobs)
    aside = await _put_aside(blobs, jobs)
    try:
        answers = await enqueue([aside.get(i, job) for i, job in enumerate(jobs)])
    except (EnqueueFailed, KeyConflict, SchemaMismatch):
        # Certain that no row refers to them; of anything else, such as an interrupt, that is not certain.
        await _take_back(blobs, list(aside.values()))
        raise
    # Our own id as the answer may be that of a row which was written by this very call, and refers to this very blob.
    await _take_back(blobs, [job for i, job in aside.items() if answers[i].id != job.id])
    return answers


async def _put_aside(blobs: Offload, jobs: Sequence[NewJob]) -> dict[int, NewJob]:
    """The large ones among these, by their places, with references: all of them or none."""
    done: dict[int, NewJob] = {}

    def put(place: int) -> None:
        job = jobs[place]
        done[place] = msgspec.structs.replace(job, payload=blobs.keep(job.id, "payload", job.payload))

    try:
        await off_loop(put, [i for i, job in enumerate(jobs) if size_of(job.payload) > INLINE_LIMIT])
    except BlobUnavailable as error:
        await _take_back(blobs, list(done.values()))
        raise EnqueueFailed(f"nothing was stored: {error}") from error
    return done


async def _take_back(blobs: Offload, jobs: Sequence[NewJob]) -> None:
    if jobs:
        await off_loop(lambda job: blobs.take_back(job.id, job.payload), jobs)


async def payload_aside(blobs: Offload | None, job: JobId, text: str) -> str:
    """The payload as it goes into the row of a job that is there already. Raises BlobUnavailable."""
    if blobs is None or size_of(text) <= INLINE_LIMIT:
        return text
    return (await off_loop(lambda each: blobs.keep(job, "payload", each), [text]))[0]


async def value_of(blobs: Offload | None, job: JobId, reference: Reference) -> Any:
    """The value that a reference stands for. Raises BlobUnavailable."""
    if blobs is None:
        raise unavailable(job, reference, NO_BLOBS)
    (text,) = await off_loop(lambda wanted: blobs.fetch(job, wanted), [reference])
    return decode(text)


async def with_values(blobs: Offload | None, job: Job) -> Job:
    """The job with what its references stand for; what cannot be fetched is shown with the problem."""
    for name in ("payload", "result"):
        if isinstance(reference := getattr(job, name), Reference):
            try:
                value = await value_of(blobs, job.id, reference)
            except BlobUnavailable as error:
                value = {**reference.shown, "problem": error.problem}
            job = msgspec.structs.replace(job, **{name: value})
    return job


def without_values(job: Job) -> Job:
    """The job with its references in a form fit for people and programs."""
    if isinstance(job.payload, Reference):
        job = msgspec.structs.replace(job, payload=job.payload.shown)
    if isinstance(job.result, Reference):
        job = msgspec.structs.replace(job, result=job.result.shown)
    return job


async def drop_blobs(operator: OperatorStore, blobs: Offload | None, moved: Sequence[Moved | None]) -> None:
    """Collect the blobs of jobs that were just deleted; what cannot be removed now is left to the sweep."""
    gone = [each.id for each in moved if each is not None and each.done]
    if blobs is not None and gone:
        try:
            await drop_unneeded(operator, blobs.store, gone)
        except BlobFailed:
            return
