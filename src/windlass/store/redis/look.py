"""get: jobs by their ids, wherever they are in their lives."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.moments import Micros
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import caught_up, see_anywhere
from windlass.store.redis.leases import lease_ends
from windlass.store.redis.record import Letter, Record, unpack
from windlass.store.redis.row import row_of
from windlass.store.rows import to_job

MOST_AT_ONCE = 250
"""So many ids are looked for in one call of a script."""

_notes = msgspec.msgpack.Decoder(tuple[str | None, str | None])


class Found(msgspec.Struct, frozen=True):
    """A job, and where it is."""

    queue: str
    record: Record
    notes: bytes

    def job(self, leases: Mapping[str, Micros]) -> Job:
        """As people see it; `leases` tells when those of runners end."""
        notes = _notes.decode(self.notes) if self.notes else None
        ends = leases.get(self.record.runner) if self.record.letter == Letter.RUNNING else None
        return to_job(row_of(self.record, self.queue), notes, ends)


async def get(access: Access, ids: Sequence[JobId]) -> list[Job | None]:
    """In the order of the ids."""
    found = await find(access, ids)
    jobs = await jobs_of(access, found)
    return [jobs.get(id_) for id_ in ids]


async def outcomes(access: Access, ids: Sequence[JobId]) -> list[str | None]:
    """What tombstones tell."""
    sight = await see_anywhere(access, ids)
    return [sight.tombs[id_].outcome if id_ in sight.tombs and id_ not in sight.jobs else None for id_ in ids]


async def find(access: Access, ids: Iterable[JobId], queues: Sequence[str] | None = None) -> dict[JobId, Found]:
    """Where jobs are: an id does not tell. Those that were seen here are looked for where that was; who is not found
    so is looked for in every queue, all of them in one trip."""
    wanted = list(dict.fromkeys(ids))
    if queues is not None:
        return await _look(access, dict.fromkeys(queues, wanted))
    found = await _look(access, access.server.seen.places(wanted))
    if missing := [id_ for id_ in wanted if id_ not in found]:
        found |= await _look(access, dict.fromkeys(await access.queue_names(), missing))
    if missing := [id_ for id_ in missing if id_ not in found]:
        found |= await _look(access, await caught_up(access, missing))
    for id_, each in found.items():
        access.server.seen.note(each.queue, (id_,))
    return found


async def found_jobs(access: Access, places: Mapping[JobId, str]) -> dict[JobId, Job]:
    """Jobs of which it is known where they are; one that has gone meanwhile is left out."""
    ids_of: dict[str, list[JobId]] = defaultdict(list)
    for id_, queue in places.items():
        ids_of[queue].append(id_)
    return await jobs_of(access, await _look(access, ids_of))


async def jobs_of(access: Access, found: Mapping[JobId, Found]) -> dict[JobId, Job]:
    """Leases are no part of a queue: one more trip, if any of them runs."""
    running = {each.record.runner for each in found.values() if each.record.letter == Letter.RUNNING}
    leases = await lease_ends(access, running)
    return {id_: each.job(leases) for id_, each in found.items()}


async def _look(access: Access, ids_of: Mapping[str, Sequence[JobId]]) -> dict[JobId, Found]:
    """In so many calls as it takes: none reads more than a bounded number of jobs."""
    found: dict[JobId, Found] = {}
    longest = max(map(len, ids_of.values()), default=0)
    for at in range(0, longest, MOST_AT_ONCE):
        requests = {queue: (part,) for queue, ids in ids_of.items() if (part := ids[at : at + MOST_AT_ONCE])}
        for queue, (_, *rows) in (await access.calls("look", requests)).items():
            found |= {row[0].decode(): _found(queue, row) for row in rows}
    return found


def _found(queue: str, row: Sequence[Any]) -> Found:
    id_, value, more, notes = row
    return Found(queue, unpack(id_.decode(), value, more), notes)
