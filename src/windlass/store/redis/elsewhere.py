"""Ids that are known in another queue than the one they are handed in to: they are known all the same."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.store.redis.access import Access

MOST_ASKED = 500


async def known_elsewhere(access: Access, jobs: Sequence[NewJob]) -> set[JobId]:
    """Those of other queues. An id that this process made for this very job need not be asked for."""
    asked = [job for job in jobs if not job.fresh]
    if not asked:
        return set()
    names = await access.queue_names()
    known: set[JobId] = set()
    for start in range(0, len(asked), MOST_ASKED):
        portion = asked[start : start + MOST_ASKED]
        requests = {name: (ids,) for name in names if (ids := [job.id for job in portion if job.queue != name])}
        for found in (await access.calls("known", requests)).values():
            known.update(id_.decode() for id_ in found)
    return known


def strays(jobs: Sequence[NewJob]) -> list[int]:
    """The places of those whose id comes before in this very hand-in, for another queue."""
    first: dict[JobId, str] = {}
    return [place for place, job in enumerate(jobs) if first.setdefault(job.id, job.queue) != job.queue]
