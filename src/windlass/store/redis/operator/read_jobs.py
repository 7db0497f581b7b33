"""get: jobs by their ids, wherever they are in their lives."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.liveness.leases import lease_ends
from windlass.store.redis.operator.read_anywhere import find_moved, read_anywhere
from windlass.store.redis.records.record import Letter, Record, unpack
from windlass.store.redis.records.row import row_of
from windlass.store.rows import to_job

MAX_AT_ONCE = 250
"""Ids in one call of a script."""

_notes = msgspec.msgpack.Decoder(tuple[str | None, str | None])


class Found(msgspec.Struct, frozen=True):
    """A job, and where it is."""

    queue: str
    record: Record
    notes: bytes

    def job(self, leases: Mapping[str, Micros]) -> Job:
        """As users see it; `leases` has the ends of runners' leases."""
        notes = _notes.decode(self.notes) if self.notes else None
        ends = leases.get(self.record.runner) if self.record.letter == Letter.RUNNING else None
        return to_job(row_of(self.record, self.queue), notes, ends)


async def get(access: Access, ids: Sequence[JobId]) -> list[Job | None]:
    """In the order of the ids."""
    found = await find(access, ids)
    jobs = await jobs_of(access, found)
    return [jobs.get(id_) for id_ in ids]


async def outcomes(access: Access, ids: Sequence[JobId]) -> list[str | None]:
    """The outcomes that tombstones have."""
    sight = await read_anywhere(access, ids)
    return [
        sight.tombstones[id_].outcome if id_ in sight.tombstones and id_ not in sight.jobs else None for id_ in ids
    ]


async def find(access: Access, ids: Iterable[JobId], queues: Sequence[str] | None = None) -> dict[JobId, Found]:
    """Find jobs by id: first in the queues where this process saw them, then in every queue, in one round trip."""
    wanted = list(dict.fromkeys(ids))
    if queues is not None:
        return await _read(access, dict.fromkeys(queues, wanted))
    found = await _read(access, access.server.job_locations.places(wanted))
    if missing := [id_ for id_ in wanted if id_ not in found]:
        found |= await _read(access, dict.fromkeys(await access.queue_names(), missing))
    if missing := [id_ for id_ in missing if id_ not in found]:
        found |= await _read(access, await find_moved(access, missing))
    for id_, each in found.items():
        access.server.job_locations.note(each.queue, (id_,))
    return found


async def jobs_at(access: Access, places: Mapping[JobId, str]) -> dict[JobId, Job]:
    """Jobs whose queues are known; one that was dropped meanwhile is left out."""
    ids_of: dict[str, list[JobId]] = defaultdict(list)
    for id_, queue in places.items():
        ids_of[queue].append(id_)
    return await jobs_of(access, await _read(access, ids_of))


async def jobs_of(access: Access, found: Mapping[JobId, Found]) -> dict[JobId, Job]:
    """Leases are no part of a queue: one more trip, if any of them runs."""
    running = {each.record.runner for each in found.values() if each.record.letter == Letter.RUNNING}
    leases = await lease_ends(access, running)
    return {id_: each.job(leases) for id_, each in found.items()}


async def _read(access: Access, ids_of: Mapping[str, Sequence[JobId]]) -> dict[JobId, Found]:
    """In as many calls as it takes: each reads a bounded number of jobs."""
    found: dict[JobId, Found] = {}
    left = {queue: ids for queue, ids in ids_of.items() if ids}
    while left:
        replies = await access.call_queues("read_jobs", {queue: (ids[:MAX_AT_ONCE],) for queue, ids in left.items()})
        for queue, (_, *rows) in replies.items():
            found |= {row[0].decode(): _found(queue, row) for row in rows}
        left = {queue: rest for queue, (looked, *_) in replies.items() if (rest := left[queue][looked:])}
    return found


def _found(queue: str, row: Sequence[Any]) -> Found:
    id_, value, more, notes = row
    return Found(queue, unpack(id_.decode(), value, more), notes)
