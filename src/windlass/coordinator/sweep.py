"""The sweep: blobs that no job refers to are removed.

Nearly all go with their jobs. What is left comes of crashes between putting a blob and storing its job, of queues
that keep nothing, of results of attempts that were not the last. A blob is put before anything refers to it, so only
old ones are looked at: a fresh one may belong to a job that is just being stored.
"""

from collections.abc import Sequence

from windlass.blobs.contract import BlobKey, BlobStore
from windlass.blobs.offload import off_loop
from windlass.client.bequest import is_taken_from
from windlass.core.events import BlobsSwept, Emit
from windlass.core.job import Job
from windlass.core.reference import Reference
from windlass.core.status import Status
from windlass.store.contract import Store

OLD_SECONDS = 24 * 3600.0
MOST_LOOKED_AT = 500
PAUSE_SECONDS = 1.0
"""Between pages of one walk: a million blobs take most of an hour."""
WALK_EVERY = 3600.0


class Sweep:
    """Walks through the blob store, a page at each turn."""

    def __init__(self, store: Store, blobs: BlobStore, emit: Emit) -> None:
        self._store = store
        self._blobs = blobs
        self._emit = emit
        self._after: str | None = None

    async def run(self) -> float:
        """One page; the seconds until the next."""
        (page,) = await off_loop(lambda after: self._blobs.page(after, MOST_LOOKED_AT), [self._after])
        self._after = page.after
        old = [each.key for each in page.blobs if each.age > OLD_SECONDS]
        needless = await self._needless(old) if old else []
        if needless:
            await off_loop(self._blobs.remove, [needless])
            self._emit(BlobsSwept(blobs=len(needless)))
        return WALK_EVERY if page.after is None else PAUSE_SECONDS

    async def _needless(self, keys: Sequence[BlobKey]) -> list[BlobKey]:
        ids = sorted({key.job for key in keys})
        jobs = dict(zip(ids, await self._store.operator.get(ids), strict=True))
        unneeded = [key for key in keys if not _needs(jobs[key.job], key.name)]
        taken = {job for job in {key.job for key in unneeded} if await is_taken_from(self._store.operator, job)}
        return [key for key in unneeded if key.job not in taken]


def _needs(job: Job | None, name: str) -> bool:
    """Whether a job may still ask for this blob; the result of a running one may wait for a store that is away."""
    if job is None:
        return False
    values = (job.payload, job.result)
    return job.status is Status.RUNNING or any(isinstance(v, Reference) and v.name == name for v in values)
