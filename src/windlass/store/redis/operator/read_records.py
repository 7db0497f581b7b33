"""Reads jobs as they are now, for verbs that decide about them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.records.record import Record, unpack

MAX_READ = 100
"""Ids in one call: scripts must be short."""


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
    """These ids in these queues: one trip for up to MAX_SEEN of each."""
    sight = JobView({}, {}, {}, set())
    longest = max(map(len, wanted.values()), default=0)
    for at in range(0, longest, MAX_READ):
        requests = {queue: (part,) for queue, ids in wanted.items() if (part := ids[at : at + MAX_READ])}
        for queue, (now, *rows) in (await access.call_queues("read_records", requests)).items():
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
