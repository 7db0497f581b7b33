"""list and select: pages of jobs, by bounded walks through every queue, merged by id."""

from collections.abc import Mapping

import msgspec

from windlass.core.ids import JobId, check_id
from windlass.store.records import JobFilter, JobPage, Page
from windlass.store.redis.access import Access
from windlass.store.redis.look import found_jobs
from windlass.store.redis.record import STATUS

MOST_WALKED = 10_000
"""So many jobs of a queue a page may look at to find matches: then it ends, short, and the next one goes on."""


class Way(msgspec.Struct):
    """How far a queue was walked, and what was found there."""

    ids: list[JobId]
    reached: JobId
    """Up to here everything was looked at."""
    ended: bool
    seen: int = 0
    """How many jobs were looked at."""

    def goes_on(self, limit: int) -> bool:
        """Whether there may be more, and it may be looked for."""
        return not self.ended and len(self.ids) < limit and self.seen < MOST_WALKED


async def list_jobs(access: Access, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the page before. Rare matches make short pages, not long walks."""
    start = check_id(cursor, "cursor") if cursor else ""
    if limit < 1:
        return Page((), None)
    ways = await _walked(access, wanted, limit, start, oldest=False)
    found = {id_: queue for queue, way in ways.items() for id_ in way.ids}
    # Below the highest place at which a walk stopped, something may be missing.
    floor = max((way.reached for way in ways.values() if not way.ended), default="")
    ids = sorted((id_ for id_ in found if id_ >= floor), reverse=True)[:limit]
    end = ids[-1] if len(ids) == limit else floor or None
    jobs = await found_jobs(access, {id_: found[id_] for id_ in ids})
    statuses = wanted.status
    kept = [job for id_ in ids if (job := jobs.get(id_)) and (not statuses or job.status in statuses)]
    return Page(tuple(kept), end)


async def select(access: Access, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Oldest first, after a given id: as many as are wanted, if there are."""
    ids: list[JobId] = []
    start = after or ""
    while len(ids) < limit:
        ways = await _walked(access, wanted, limit - len(ids), start, oldest=True)
        ceiling = min((way.reached for way in ways.values() if not way.ended), default=None)
        found = sorted({id_ for way in ways.values() for id_ in way.ids if ceiling is None or id_ <= ceiling})
        ids += found[: limit - len(ids)]
        if ceiling is None:
            break
        start = ceiling
    return ids


async def _walked(access: Access, wanted: JobFilter, limit: int, start: JobId, *, oldest: bool) -> Mapping[str, Way]:
    """Every queue in which a match can be, walked until enough was found, or far enough."""
    names = await access.queue_names()
    ways = {name: Way([], start, ended=False) for name in names if wanted.queue in (None, name)}
    while unfinished := {name: way for name, way in ways.items() if way.goes_on(limit)}:
        requests = {name: (_request(wanted, way, limit, oldest=oldest),) for name, way in unfinished.items()}
        for name, (reached, seen, *ids) in (await access.calls("walk", requests)).items():
            way = ways[name]
            way.ids += [id_.decode() for id_ in ids]
            way.reached, way.ended, way.seen = reached.decode(), not reached, way.seen + seen
    return ways


def _request(wanted: JobFilter, way: Way, limit: int, *, oldest: bool) -> tuple[object, ...]:
    """The request of walk.lua."""
    letters = "".join(chr(letter) for letter, status in STATUS.items() if status in wanted.status)
    said = (wanted.type, wanted.tenant, wanted.tag, wanted.parent, wanted.id_end)
    most = MOST_WALKED - way.seen
    return way.reached, limit - len(way.ids), most, oldest, letters, *(each or False for each in said)
