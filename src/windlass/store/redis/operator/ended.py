"""ended: jobs by the moment at which they ended."""

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros, to_micros
from windlass.core.status import Status
from windlass.store.records import NEWEST, Ends, FailureKey, JobEnd
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator.read_jobs import failures
from windlass.store.redis.records.ending import row_of
from windlass.store.redis.records.record import unpack
from windlass.store.rows import failure_key, to_job

MAX_AT_ONCE = 100
"""Jobs in one call of the script."""
Position = tuple[Micros, JobId]


class _Walk(msgspec.Struct):
    """How far a queue was read, and what was found there."""

    reached: Position
    found: list[JobEnd]
    ended: bool = False

    def may_continue(self, limit: int) -> bool:
        return not self.ended and len(self.found) < limit


async def ended(access: Access, since: Micros | None, after: JobId | None, limit: int) -> Ends:
    """Ended jobs of all queues, in the order of their ends."""
    now = await access.now()
    if since is None:
        return Ends(now, ())
    walks = {name: _Walk((since, after or ""), []) for name in await access.queue_names()}
    while unfinished := {name: walk for name, walk in walks.items() if walk.may_continue(limit)}:
        requests = {name: ((*walk.reached, MAX_AT_ONCE),) for name, walk in unfinished.items()}
        for name, (moment, id_, *rows) in (await access.call_queues("ended", requests)).items():
            walk = walks[name]
            walk.found += [_end(name, *row) for row in rows]
            reached = (int(moment), id_.decode()) if id_ else walk.reached
            walk.ended = not id_ or reached == walk.reached
            walk.reached = reached
    # Behind the earliest position at which a walk stopped, jobs may be missing.
    certain = min((walk.reached for walk in walks.values() if not walk.ended), default=None)
    ends = [end for walk in walks.values() for end in walk.found if certain is None or (end.at, end.id) <= certain]
    return Ends(now, tuple(sorted(ends, key=lambda end: (end.at, end.id))[:limit]))


async def dead_ends(access: Access, limit: int, before: FailureKey = NEWEST) -> list[JobEnd]:
    """How dead jobs ended, latest first."""
    found: list[JobEnd] = []
    while len(found) < limit and (page := await failures(access, limit, before)):
        found += [_end_of(job) for job in page if job.status is Status.DEAD]
        before = failure_key(page[-1])
    return found[:limit]


def _end(queue: str, id_: bytes, value: bytes, details: bytes) -> JobEnd:
    return _end_of(to_job(row_of(unpack(id_.decode(), value, details), queue)))


def _end_of(job: Job) -> JobEnd:
    return JobEnd(
        id=job.id,
        queue=job.queue,
        type=job.type,
        status=job.status,
        attempt=job.attempt,
        at=to_micros(job.finished_at or job.updated_at),
        started_at=None if job.started_at is None else to_micros(job.started_at),
        tenant=job.tenant,
        schedule=job.schedule,
        tags=job.tags,
        reason=job.reason,
        error=job.error,
    )
