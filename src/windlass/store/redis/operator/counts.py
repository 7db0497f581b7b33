"""counts and failures: cheap, however many jobs there are."""

from collections import defaultdict

from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.records import Counts
from windlass.store.redis.connection.access import Access
from windlass.store.redis.records.record import STATUS, unpack
from windlass.store.redis.records.row import row_of
from windlass.store.rows import to_job

MAX_AT_ONCE = 250
"""Failures that are read from one queue: more than a list shows."""


async def counts(access: Access) -> Counts:
    """Every script that moves a job counts along: nothing is counted here."""
    replies = await access.call_queues("counts", dict.fromkeys(await access.queue_names(), ((),)))
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, flat in replies.items():
        for letter, jobs in zip(flat[::2], flat[1::2], strict=True):
            queues[queue][STATUS[ord(letter)]] += int(jobs)
    return Counts({name: queues[name] for name in sorted(queues)})


async def failures(access: Access, limit: int) -> list[Job]:
    """The newest of each queue by an index of its own, and the newest of all."""
    most = min(limit, MAX_AT_ONCE)
    replies = await access.call_queues("failures", dict.fromkeys(await access.queue_names(), ((most,),)))
    jobs = [
        to_job(row_of(unpack(id_.decode(), value, more), queue))
        for queue, found in replies.items()
        for id_, value, more in found
    ]
    return sorted(jobs, key=lambda job: job.updated_at, reverse=True)[:limit]
