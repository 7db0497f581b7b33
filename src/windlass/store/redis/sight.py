"""Sight: jobs as they are now, for whoever decides what becomes of them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.redis.access import Access
from windlass.store.redis.record import Record, unpack

MOST_SEEN = 250
"""So many ids a call: scripts must be short."""


class Seen(msgspec.Struct, frozen=True):
    """A job, where it is, and when that was seen."""

    queue: str
    now: Micros
    record: Record


class Tomb(msgspec.Struct, frozen=True):
    """What is left of a dropped job."""

    attempt: int
    outcome: str


class Sight(msgspec.Struct, frozen=True):
    """What was seen of some jobs."""

    jobs: dict[JobId, Seen]
    tombs: dict[JobId, Tomb]
    leaving: dict[JobId, str]
    """On their way from this queue to another one, left so by somebody who may have died."""


async def see(access: Access, wanted: Mapping[str, Sequence[JobId]]) -> Sight:
    """These ids in these queues, up to MOST_SEEN of each: one trip."""
    sight = Sight({}, {}, {})
    replies = await access.calls("see", {queue: (ids,) for queue, ids in wanted.items() if ids})
    for queue, (now, *seen) in replies.items():
        for key, *values in seen:
            id_ = key.decode()
            match values:
                case [value, more]:
                    sight.jobs[id_] = Seen(queue, now, unpack(id_, value, more))
                case [tomb]:
                    attempt, outcome = tomb.decode().split(" ", 1)
                    if attempt != MOVED:
                        sight.tombs[id_] = Tomb(int(attempt), outcome)
                case _:
                    sight.leaving[id_] = queue
    return sight


MOVED = ">"
"""In the place of the attempt: the job was moved, and what became of it is told elsewhere."""


async def see_anywhere(access: Access, ids: Iterable[JobId]) -> Sight:
    """An id does not tell its queue: all of them are asked."""
    wanted = list(ids)
    return await see(access, dict.fromkeys(await access.queue_names(), wanted))
