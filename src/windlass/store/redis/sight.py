"""Sight: jobs as they are now, for whoever decides what becomes of them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.redis.access import Access
from windlass.store.redis.record import Record, unpack

MOST_SEEN = 100
"""So many ids a call: scripts must be short."""


MOVED = ">"
"""In the place of the attempt: the job was moved, and what became of it is told elsewhere."""


class Seen(msgspec.Struct, frozen=True):
    """A job, where it is, and when that was seen."""

    queue: str
    now: Micros
    record: Record


class Tomb(msgspec.Struct, frozen=True):
    """What is left of a dropped job."""

    attempt: int
    outcome: str
    queue: str


class Sight(msgspec.Struct, frozen=True):
    """What was seen of some jobs."""

    jobs: dict[JobId, Seen]
    tombs: dict[JobId, Tomb]
    leaving: dict[JobId, str]
    """On their way from this queue to another one: whoever carries them may have died."""
    moved: set[JobId]
    """They were moved from a queue that was looked at."""

    def in_motion(self, ids: Iterable[JobId]) -> list[JobId]:
        """Those that were not seen, though they must be somewhere: they went while we looked."""
        return [
            id_
            for id_ in ids
            if (id_ in self.leaving or id_ in self.moved) and id_ not in self.jobs and id_ not in self.tombs
        ]


async def see(access: Access, wanted: Mapping[str, Sequence[JobId]]) -> Sight:
    """These ids in these queues: one trip for up to MOST_SEEN of each."""
    sight = Sight({}, {}, {}, set())
    longest = max(map(len, wanted.values()), default=0)
    for at in range(0, longest, MOST_SEEN):
        requests = {queue: (part,) for queue, ids in wanted.items() if (part := ids[at : at + MOST_SEEN])}
        for queue, (now, *rows) in (await access.calls("see", requests)).items():
            for key, *values in rows:
                _add(sight, queue, now, key.decode(), values)
    return sight


def _add(sight: Sight, queue: str, now: Micros, id_: JobId, values: list[bytes]) -> None:
    match values:
        case [value, more]:
            sight.jobs[id_] = Seen(queue, now, unpack(id_, value, more))
        case [tomb]:
            attempt, outcome = tomb.decode().split(" ", 1)
            if attempt == MOVED:
                sight.moved.add(id_)
            else:
                sight.tombs[id_] = Tomb(int(attempt), outcome, queue)
        case _:
            sight.leaving[id_] = queue
