"""prune: drop finished jobs whose retention is over, a bounded number at a time."""

from collections.abc import Iterable, Sequence

from windlass.core.ids import JobId
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access, QueueErrors
from windlass.store.redis.duties.buckets import refresh_buckets
from windlass.store.redis.operator.documents import prune_documents
from windlass.store.redis.schedules.write_schedules import forget_removed
from windlass.store.redis.stats.meters import prune_meters
from windlass.store.redis.stats.samples import prune_samples

MAX_ROUNDS = 100
"""For tombstones and windows: a minute brings more than one call clears."""
MAX_PRUNED = 250
"""Of one queue in one call: scripts must be short."""


async def prune(access: Access, limit: int) -> Sequence[JobId]:
    """All queues are asked for their share; those that gave all of it are asked again while there is any left.

    Queues that cannot be reached hold up no others. Buckets that are full again go too, and what queues know of
    schedules that were removed long ago.
    """
    dropped: list[JobId] = []
    troubles = QueueErrors()
    more: set[str] = set()
    waiting = await access.queue_names()
    while waiting and (left := limit - len(dropped)) > 0:
        asked, waiting = waiting[:left], waiting[left:]
        share = min(MAX_PRUNED, left // len(asked))
        replies, unreached = await access.call_reachable("prune", dict.fromkeys(asked, ([share],)))
        troubles += unreached
        dropped += [id_.decode() for _, *ids in replies.values() for id_ in ids]
        waiting += [queue for queue, (_, *ids) in replies.items() if len(ids) == share]
        more |= {queue for queue, (any_left, *_) in replies.items() if any_left}
    troubles += await _clear_more(access, more)
    for clean_up in (prune_meters, prune_samples, prune_documents, refresh_buckets, forget_removed):
        try:
            await clean_up(access)
        except StoreUnavailable as error:
            troubles.append(error)
    if troubles and not dropped:  # else the caller must learn what was dropped, and calls again
        raise troubles[0]
    return dropped


async def _clear_more(access: Access, queues: Iterable[str]) -> QueueErrors:
    """Tombstones and windows of keys that are over, where one call did not clear all of them."""
    troubles = QueueErrors()
    for _ in range(MAX_ROUNDS):
        if not queues:
            break
        replies, unreached = await access.call_reachable("prune", dict.fromkeys(queues, ([0],)))
        troubles += unreached
        queues = [queue for queue, (any_left, *_) in replies.items() if any_left]
    return troubles
