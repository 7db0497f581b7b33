"""Reads jobs by id, in one queue or in all, also those that are moving to another one."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.moments import Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import call_in_portions
from windlass.store.redis.operator.move import finish_moves
from windlass.store.redis.records.record import Record, unpack

MOVED = ">"
"""Instead of the attempt: the job was moved to another queue."""


class FoundJob(msgspec.Struct, frozen=True):
    """A job, its queue, and when it was read."""

    queue: str
    now: Micros
    record: Record
    notes: bytes
    """Empty if they were not wanted, or there are none."""


class Tombstone(msgspec.Struct, frozen=True):
    """The tombstone of a dropped job."""

    attempt: int
    outcome: str
    queue: str


class JobView(msgspec.Struct, frozen=True):
    """Some jobs as they were read."""

    jobs: dict[JobId, FoundJob]
    tombstones: dict[JobId, Tombstone]
    moving: dict[JobId, str]
    """Moving from this queue to another one; the mover may have died."""
    moved: set[JobId]
    """Moved away from a queue that was read."""

    def in_transit(self, ids: Iterable[JobId]) -> list[JobId]:
        """Ids that were not found though their jobs exist: they moved between the reads."""
        return [
            id_
            for id_ in ids
            if (id_ in self.moving or id_ in self.moved) and id_ not in self.jobs and id_ not in self.tombstones
        ]


async def read_records(access: Access, wanted: Mapping[str, Sequence[JobId]], *, notes: bool = False) -> JobView:
    """These ids in these queues: one round trip for up to MAX_AT_ONCE of each, unless their texts are long."""
    view = JobView({}, {}, {}, set())
    async for queue, _, (now, _, *rows) in call_in_portions(
        access,
        "read_records",
        wanted,
        lambda ids: ((ids, notes),),
        portion=lambda ids: ids[:MAX_AT_ONCE],
        done=lambda _, reply: int(reply[1]),
    ):
        for key, *values in rows:
            _add(view, queue, now, key.decode(), values)
    return view


def _add(view: JobView, queue: str, now: Micros, id_: JobId, values: list[bytes]) -> None:
    match values:
        case [value, details, notes]:
            view.jobs[id_] = FoundJob(queue, now, unpack(id_, value, details), notes)
        case [tomb]:
            attempt, outcome = tomb.decode().split(" ", 1)
            if attempt == MOVED:
                view.moved.add(id_)
            else:
                view.tombstones[id_] = Tombstone(int(attempt), outcome, queue)
        case _:
            view.moving[id_] = queue


MAX_AT_ONCE = 250
"""Jobs that one call reads."""
MAX_ASKED = 500
"""Ids in one call of known_ids.lua."""
MAX_READS = 5
"""How often queues are read while jobs move between the reads."""


async def read_anywhere(access: Access, ids: Iterable[JobId], *, notes: bool = False) -> JobView:
    """An id does not contain its queue: jobs that are not where they were last seen are read in all queues."""
    wanted = list(ids)
    view = await read_records(access, access.server.job_locations.by_queue(wanted), notes=notes)
    if missing := [id_ for id_ in wanted if id_ not in view.jobs]:
        everywhere = await _read_everywhere(access, missing, notes=notes)
        view = msgspec.structs.replace(everywhere, jobs=everywhere.jobs | view.jobs)
    return view


async def _read_everywhere(access: Access, wanted: list[JobId], *, notes: bool) -> JobView:
    """Read all queues; unfinished moves of missing jobs are finished, and the queues read again."""
    for _ in range(MAX_READS):
        view = await read_records(access, dict.fromkeys(await access.queue_names(), wanted), notes=notes)
        if not view.in_transit(wanted):
            break
        await finish_moves(access, sorted(set(view.moving.values())), least=0)
    return view


async def known_ids(access: Access, jobs: Sequence[NewJob], *, elsewhere: bool = False) -> set[JobId]:
    """Ids of these jobs that any queue knows; `elsewhere`: any but the job's own."""
    names, known = await access.queue_names() if jobs else [], set[JobId]()
    asked = {name: [job.id for job in jobs if not elsewhere or job.queue != name] for name in names}
    async for _, _, found in call_in_portions(access, "known_ids", asked, portion=lambda ids: ids[:MAX_ASKED]):
        known.update(id_.decode() for id_ in found)
    return known
