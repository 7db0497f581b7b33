"""Reads jobs as they are now, for verbs that decide about them."""

from collections import defaultdict
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
"""In the place of the attempt: the job was moved to another queue."""


class FoundJob(msgspec.Struct, frozen=True):
    """A job, where it is, and when that was seen."""

    queue: str
    now: Micros
    record: Record


class Tombstone(msgspec.Struct, frozen=True):
    """What is left of a dropped job."""

    attempt: int
    outcome: str
    queue: str


class JobView(msgspec.Struct, frozen=True):
    """What was seen of some jobs."""

    jobs: dict[JobId, FoundJob]
    tombstones: dict[JobId, Tombstone]
    moving: dict[JobId, str]
    """On their way from this queue to another one: whoever carries them may have died."""
    moved: set[JobId]
    """They were moved from a queue that was looked at."""

    def in_transit(self, ids: Iterable[JobId]) -> list[JobId]:
        """Those that were not seen, though they must be somewhere: they went while we looked."""
        return [
            id_
            for id_ in ids
            if (id_ in self.moving or id_ in self.moved) and id_ not in self.jobs and id_ not in self.tombstones
        ]


async def read_records(access: Access, wanted: Mapping[str, Sequence[JobId]]) -> JobView:
    """These ids in these queues: one round trip for up to MAX_READ of each."""
    sight = JobView({}, {}, {}, set())
    async for queue, _, (now, *rows) in call_in_portions(access, "read_records", wanted):
        for key, *values in rows:
            _add(sight, queue, now, key.decode(), values)
    return sight


def _add(sight: JobView, queue: str, now: Micros, id_: JobId, values: list[bytes]) -> None:
    match values:
        case [value, more]:
            sight.jobs[id_] = FoundJob(queue, now, unpack(id_, value, more))
        case [tomb]:
            attempt, outcome = tomb.decode().split(" ", 1)
            if attempt == MOVED:
                sight.moved.add(id_)
            else:
                sight.tombstones[id_] = Tombstone(int(attempt), outcome, queue)
        case _:
            sight.moving[id_] = queue


MAX_ASKED = 500
"""Ids in one call that looks whether they are known."""
MAX_READS = 5
"""How often a job may move between our reads of two queues."""


async def read_anywhere(access: Access, ids: Iterable[JobId]) -> JobView:
    """An id does not tell its queue: jobs that are not where they were last seen are looked for in all queues."""
    wanted = list(ids)
    sight = await read_records(access, access.server.job_locations.places(wanted))
    if missing := [id_ for id_ in wanted if id_ not in sight.jobs]:
        everywhere = await _read_everywhere(access, missing)
        sight = msgspec.structs.replace(everywhere, jobs=everywhere.jobs | sight.jobs)
    return sight


async def _read_everywhere(access: Access, wanted: list[JobId]) -> JobView:
    """Unfinished moves are finished first."""
    for _ in range(MAX_READS):
        sight = await read_records(access, dict.fromkeys(await access.queue_names(), wanted))
        if not sight.in_transit(wanted):
            break
        await finish_moves(access, sorted(set(sight.moving.values())), least=0)
    return sight


async def known_ids(access: Access, jobs: Sequence[NewJob], *, elsewhere: bool = False) -> set[JobId]:
    """Ids of these jobs that any queue knows; `elsewhere`: any but the job's own."""
    names, known = await access.queue_names() if jobs else [], set[JobId]()
    asked = {name: [job.id for job in jobs if not elsewhere or job.queue != name] for name in names}
    async for _, _, found in call_in_portions(access, "known_ids", asked, portion=lambda ids: ids[:MAX_ASKED]):
        known.update(id_.decode() for id_ in found)
    return known


async def find_moved(access: Access, ids: Iterable[JobId]) -> dict[str, list[JobId]]:
    """Jobs that were not found: the queues of those that were only on their way."""
    places: dict[str, list[JobId]] = defaultdict(list)
    for id_, seen in (await read_anywhere(access, ids)).jobs.items():
        places[seen.queue].append(id_)
    return places
