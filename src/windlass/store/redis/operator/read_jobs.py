"""get, outcomes, list, select, count_completed, counts, failures: reading jobs, live or finished."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.records import NEWEST, Counts, FailureKey, JobFilter, JobPage, Page
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import by_queue
from windlass.store.redis.liveness.leases import lease_ends
from windlass.store.redis.operator.move import finish_moves
from windlass.store.redis.operator.read_records import MAX_AT_ONCE, MAX_READS, FoundJob, read_anywhere, read_records
from windlass.store.redis.records.ending import row_of
from windlass.store.redis.records.record import STATUS, Letter, unpack
from windlass.store.rows import failure_key, to_job

_notes = msgspec.msgpack.Decoder(tuple[str | None, str | None])


async def get(access: Access, ids: Sequence[JobId]) -> list[Job | None]:
    """Jobs in the order of the ids."""
    found = await find(access, ids)
    jobs = await jobs_of(access, found)
    return [jobs.get(id_) for id_ in ids]


async def outcomes(access: Access, ids: Sequence[JobId]) -> list[str | None]:
    """The outcomes of dropped jobs, from their tombstones."""
    view = await read_anywhere(access, ids)
    return [view.tombstones[id_].outcome if id_ in view.tombstones and id_ not in view.jobs else None for id_ in ids]


async def find(access: Access, ids: Iterable[JobId]) -> dict[JobId, FoundJob]:
    """Find jobs by id, with their notes, and remember where they are."""
    found = (await read_anywhere(access, dict.fromkeys(ids), notes=True)).jobs
    for id_, each in found.items():
        access.server.job_locations.note(each.queue, (id_,))
    return found


async def jobs_at(access: Access, queue_of: Mapping[JobId, str]) -> dict[JobId, Job]:
    """Jobs whose queues are known; one that was dropped or moved meanwhile is left out."""
    ids_of = by_queue(queue_of, queue_of.__getitem__)
    return await jobs_of(access, (await read_records(access, ids_of, notes=True)).jobs)


async def jobs_of(access: Access, found: Mapping[JobId, FoundJob]) -> dict[JobId, Job]:
    """Jobs as users see them. Leases are global keys: one more round trip, if any job is running."""
    running = {each.record.runner for each in found.values() if each.record.letter == Letter.RUNNING}
    leases = await lease_ends(access, running)
    return {id_: _job(each, leases) for id_, each in found.items()}


def _job(found: FoundJob, leases: Mapping[str, Micros]) -> Job:
    notes = _notes.decode(found.notes) if found.notes else None
    ends = leases.get(found.record.runner) if found.record.letter == Letter.RUNNING else None
    return to_job(row_of(found.record, found.queue), notes, ends)


MAX_WALKED = 10_000
"""Max jobs of a queue that one page reads; then it ends early, and the next page continues."""


def _max_walked(wanted: JobFilter, queues: int) -> int:
    """Max jobs to read in each queue: a search in texts has MAX_WALKED for all queues, but at least 500 for each."""
    return max(500, MAX_WALKED // max(1, queues)) if wanted.contains else MAX_WALKED


class Walk(msgspec.Struct):
    """How far a queue was walked, and what was found there."""

    ids: list[JobId]
    reached: JobId
    """All ids up to this one were read."""
    ended: bool
    most: int = MAX_WALKED
    seen: int = 0
    """How many jobs were read."""

    def may_continue(self, limit: int) -> bool:
        """Whether there may be more matches, and the walk may continue."""
        return not self.ended and len(self.ids) < limit and self.seen < self.most


async def list_jobs(access: Access, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the previous page. Rare matches make short pages, not long walks."""
    start = min(filter(None, (check_id(cursor, "cursor") if cursor else None, wanted.id_before)), default="")
    if limit < 1:
        return Page((), None)
    walks = await _walked(access, wanted, limit, start, oldest=False)
    found = {id_: queue for queue, walk in walks.items() for id_ in walk.ids}
    # Below the highest id at which a walk stopped, matches may be missing.
    watermark = max((walk.reached for walk in walks.values() if not walk.ended), default="")
    ids = sorted((id_ for id_ in found if id_ >= watermark), reverse=True)[:limit]
    end = ids[-1] if len(ids) == limit else watermark or None
    jobs = await jobs_at(access, {id_: found[id_] for id_ in ids})
    statuses = wanted.status
    kept = [job for id_ in ids if (job := jobs.get(id_)) and (not statuses or job.status in statuses)]
    return Page(tuple(kept), end)


async def select(access: Access, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Oldest first, after a given id: `limit` ids, or all that match."""
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
    """Walk every queue in which a match can be, until enough was found, or far enough.

    Groups decide by the children that are found: a moving child arrives first, also if its mover has died.
    """
    for _ in range(MAX_READS):
        names = [name for name in await access.queue_names() if wanted.queue in (None, name)]
        names = [name for name in names if not wanted.queues or name in wanted.queues]
        walks = {name: Walk([], start, ended=False, most=_max_walked(wanted, len(names))) for name in names}
        moving = set[str]()
        while unfinished := {name: walk for name, walk in walks.items() if walk.may_continue(limit)}:
            requests = {name: (_request(wanted, walk, limit, oldest=oldest),) for name, walk in unfinished.items()}
            for name, (reached, seen, may_move, *ids) in (await access.call_queues("list_ids", requests)).items():
                walk = walks[name]
                walk.ids += [id_.decode() for id_ in ids]
                walk.reached, walk.ended, walk.seen = reached.decode(), not reached, walk.seen + seen
                moving |= {name} if may_move else set()
        if not moving:
            break
        await finish_moves(access, sorted(moving), least=0)
    return walks


def _request(wanted: JobFilter, walk: Walk, limit: int, *, oldest: bool) -> tuple[object, ...]:
    """The request of list_ids.lua."""
    letters = "".join(chr(letter) for letter, status in STATUS.items() if status in wanted.status)
    filters = (
        wanted.type,
        wanted.tenant,
        wanted.tag,
        wanted.parent,
        wanted.schedule,
        wanted.id_end,
        wanted.id_before,
    )
    most = walk.most - walk.seen
    texts = [(each.field, each.text) for each in wanted.contains]
    terms = (*(each or False for each in filters), texts, wanted.types)
    return walk.reached, limit - len(walk.ids), most, oldest, letters, *terms


async def count_completed(
    access: Access, parent: JobId, after: JobId, before: JobId
) -> tuple[int, JobId | None] | None:
    """Completed children between two ids, up to the first live one.

    None if many jobs of a queue are dead or cancelled, if children move, or if one becomes live meanwhile.
    """
    queues = await access.queue_names()
    found = await _count_completed(access, parent, after, before, queues)
    if found is None or found[1] is None:
        return found
    # Each queue was counted up to its own first live child.
    until_first = await _count_completed(access, parent, after, found[1], queues)
    return None if until_first is None or until_first[1] else (until_first[0], found[1])


async def _count_completed(
    access: Access, parent: JobId, after: JobId, before: JobId, queues: Iterable[str]
) -> tuple[int, JobId | None] | None:
    completed, live, reached = 0, before, dict.fromkeys(queues, after)
    while reached:
        requests = {queue: ((parent, start, before),) for queue, start in reached.items()}
        replies = await access.call_queues("count_completed", requests)
        if any(jobs < 0 or may_move for _, jobs, _, may_move in replies.values()):
            return None
        completed += sum(jobs for _, jobs, _, _ in replies.values())
        live = min([live, *(id_.decode() for _, _, id_, _ in replies.values() if id_)])
        reached = {queue: end.decode() for queue, (end, _, _, _) in replies.items() if end}
    return completed, None if live == before else live


async def counts(access: Access) -> Counts:
    """Scripts that change a status keep the counters: no job is read here."""
    replies = await access.call_queues("counts", dict.fromkeys(await access.queue_names(), ((),)))
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, flat in replies.items():
        for letter, jobs in zip(flat[::2], flat[1::2], strict=True):
            queues[queue][STATUS[ord(letter)]] += int(jobs)
    return Counts({name: queues[name] for name in sorted(queues)})


async def failures(access: Access, limit: int, before: FailureKey = NEWEST) -> list[Job]:
    """The newest of all queues; each queue has an index of its failures."""
    most = min(limit, MAX_AT_ONCE)
    request = (most, *before)
    replies = await access.call_queues("failures", dict.fromkeys(await access.queue_names(), (request,)))
    jobs = [
        to_job(row_of(unpack(id_.decode(), value, more), queue))
        for queue, found in replies.items()
        for id_, value, more in found
    ]
    return sorted(jobs, key=failure_key, reverse=True)[:most]
