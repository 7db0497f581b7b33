"""Blobs of jobs that are gone: one may be the result that a link refers to. It stays as long as that link is kept."""

from collections.abc import Sequence

from windlass.blobs.contract import BlobStore
from windlass.blobs.offload import off_loop
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

MOST_CHILDREN = 100
"""Of a page."""


async def drop_unneeded(operator: OperatorStore, blobs: BlobStore, gone: Sequence[JobId]) -> None:
    """Remove what is kept for jobs that are gone; what links refer to is left to the sweep. Raises BlobFailed."""
    (holding,) = await off_loop(blobs.holding, [gone])
    needless = [job for job in holding if not await is_taken_from(operator, job)]
    if needless:
        await off_loop(blobs.drop, [needless])


async def is_taken_from(operator: OperatorStore, job: JobId) -> bool:
    """Whether a link is kept that came after this job."""
    page = await operator.list(JobFilter(parent=job), MOST_CHILDREN, None)
    while page.next_cursor is not None and not _is_link(page.items, job):
        page = await operator.list(JobFilter(parent=job), MOST_CHILDREN, page.next_cursor)
    return _is_link(page.items, job)


def _is_link(children: Sequence[Job], job: JobId) -> bool:
    """Whether one of them waited for it: others were handed in by it, and know nothing of its result."""
    return any(job in child.parents for child in children)
