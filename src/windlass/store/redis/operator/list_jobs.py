"""list and select: pages of jobs, by bounded walks through every queue, merged by id."""

from collections.abc import Mapping

import msgspec

from windlass.core.ids import JobId, check_id
from windlass.store.records import JobFilter, JobPage, Page
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator.read_jobs import jobs_at
from windlass.store.redis.records.record import STATUS

MAX_WALKED = 10_000
"""Jobs of a queue that one page may look at: then the page ends, short, and the next one goes on."""


class Walk(msgspec.Struct):
    """How far a queue was walked, and what was found there."""

    ids: list[JobId]
    reached: JobId
    """Up to here everything was looked at."""
    ended: bool
    seen: int = 0
    """How many jobs were looked at."""

    def goes_on(self, limit: int) -> bool:
        """Whether there may be more, and it may be looked for."""
        return not self.ended and len(self.ids) < limit and self.seen < MAX_WALKED


async def list_jobs(access: Access, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the page before. Rare matches make short pages, not long walks."""
    start = check_id(cursor, "cursor") if cursor else ""
    if limit < 1:
        return Page((), None)
    walks = await _walked(access, wanted, limit, start, oldest=False)
    found = {id_: queue for queue, walk in walks.items() for id_ in walk.ids}
    # Below the highest place at which a walk stopped, something may be missing.
    watermark = max((walk.reached for walk in walks.values() if not walk.ended), default="")
    ids = sorted((id_ for id_ in found if id_ >= watermark), reverse=True)[:limit]
    end = ids[-1] if len(ids) == limit else watermark or None
    jobs = await jobs_at(access, {id_: found[id_] for id_ in ids})
    statuses = wanted.status
    kept = [job for id_ in ids if (job := jobs.get(id_)) and (not statuses or job.status in statuses)]
    return Page(tuple(kept), end)


async def select(access: Access, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Oldest first, after a given id: as many as are wanted, if there are."""
    ids: list[JobId] = []
    start = after or ""
    while len(ids) < limit:
        walks = await _walked(access, wanted, limit - len(ids), start, oldest=True)
        reached_by_all = min((walk.reached for walk in walks.values() if not walk.ended), default=None)
        found = sorted(
            {id_ for walk in walks.values() for id_ in walk.ids if reached_by_all is None or id_ <= reached_by_all}
        )
        ids += found[: limit - len(ids)]
        if reached_by_all is None:
            break
        start = reached_by_all
    return ids


async def _walked(access: Access, wanted: JobFilter, limit: int, start: JobId, *, oldest: bool) -> Mapping[str, Walk]:
    """Every queue in which a match can be, walked until enough was found, or far enough."""
    names = await access.queue_names()
    walks = {name: Walk([], start, ended=False) for name in names if wanted.queue in (None, name)}
    while unfinished := {name: walk for name, walk in walks.items() if walk.goes_on(limit)}:
        requests = {name: (_request(wanted, walk, limit, oldest=oldest),) for name, walk in unfinished.items()}
        for name, (reached, seen, *ids) in (await access.call_queues("list_ids", requests)).items():
            walk = walks[name]
            walk.ids += [id_.decode() for id_ in ids]
            walk.reached, walk.ended, walk.seen = reached.decode(), not reached, walk.seen + seen
    return walks


def _request(wanted: JobFilter, walk: Walk, limit: int, *, oldest: bool) -> tuple[object, ...]:
    """The request of walk.lua."""
    letters = "".join(chr(letter) for letter, status in STATUS.items() if status in wanted.status)
    said = (wanted.type, wanted.tenant, wanted.tag, wanted.parent, wanted.schedule, wanted.id_end)
    most = MAX_WALKED - walk.seen
    return walk.reached, limit - len(walk.ids), most, oldest, letters, *(each or False for each in said)
