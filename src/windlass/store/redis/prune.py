"""prune: finished jobs whose retention is over go, a bounded number at a time."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.store.redis.access import Access
from windlass.store.redis.gates import tend_gates
from windlass.store.redis.meters import prune_meters
from windlass.store.redis.samples import prune_samples
from windlass.store.redis.schedules import forget_removed

MOST_PRUNED = 250
"""Of one queue in one call: scripts must be short."""


async def prune(access: Access, limit: int) -> Sequence[JobId]:
    """All queues are asked for their share; those that gave all of it are asked again while there is any left.

    Buckets that are full again go too, and what queues know of schedules that were removed long ago.
    """
    dropped: list[JobId] = []
    waiting = await access.queue_names()
    while waiting and (left := limit - len(dropped)) > 0:
        asked, waiting = waiting[:left], waiting[left:]
        share = min(MOST_PRUNED, left // len(asked))
        replies = await access.calls("prune", dict.fromkeys(asked, ([share],)))
        dropped += [id_.decode() for ids in replies.values() for id_ in ids]
        waiting += [queue for queue, ids in replies.items() if len(ids) == share]
    await prune_meters(access)
    await prune_samples(access)
    await tend_gates(access)
    await forget_removed(access)
    return dropped
