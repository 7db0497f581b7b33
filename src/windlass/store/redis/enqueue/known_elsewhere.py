"""Ids that another queue knows: they are known, whatever queue they are enqueued in."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.store.redis.connection.access import Access

MAX_ASKED = 500


async def known_elsewhere(access: Access, jobs: Sequence[NewJob]) -> set[JobId]:
    """Those of other queues. An id that this process made for this very job need not be asked for."""
    asked = [job for job in jobs if not job.fresh]
    if not asked:
        return set()
    names = await access.queue_names()
    known: set[JobId] = set()
    for start in range(0, len(asked), MAX_ASKED):
        portion = asked[start : start + MAX_ASKED]
        requests = {name: (ids,) for name in names if (ids := [job.id for job in portion if job.queue != name])}
        for found in (await access.call_queues("known_ids", requests)).values():
            known.update(id_.decode() for id_ in found)
    return known


def repeated_elsewhere(jobs: Sequence[NewJob]) -> list[int]:
    """The places of jobs whose id comes earlier in the same batch for another queue."""
    first: dict[JobId, str] = {}
    return [place for place, job in enumerate(jobs) if first.setdefault(job.id, job.queue) != job.queue]
