"""age: jobs that have waited long move up to the next higher priority with pending jobs."""

from windlass.core.jobs.job import MAX_PRIORITY
from windlass.store.redis.connection.access import Access, QueueErrors
from windlass.store.redis.duties.queue_rotation import QueueRotation

PORTION = 100
"""Jobs in one call of a script: it keeps all others waiting."""
_NONE = -MAX_PRIORITY - 1
"""Below every sort_priority: where a queue begins, and no priority to move up to yet."""


async def age(access: Access, limit: int, rounds: QueueRotation) -> int:
    """Up to so many, each by one step: how many. Queues are asked together, and share what may move.

    Those that cannot be reached are left out; that is raised at the end.
    """
    aged, troubles = 0, QueueErrors()
    going = dict.fromkeys(await rounds.take(access, "age"), (_NONE, _NONE))
    while going and aged < limit:
        asked = list(going)[: limit - aged]
        portion = min(PORTION, (limit - aged) // len(asked))
        replies, unreached = await access.call_reachable(
            "age", {queue: ((portion, *going[queue]),) for queue in asked}
        )
        troubles += unreached
        for queue in set(asked) - replies.keys():
            del going[queue]
        for queue, (moved, *place) in replies.items():
            aged += moved
            if place:
                going[queue] = (place[0], place[1])
            else:
                del going[queue]
    if troubles:
        raise troubles[0]
    return aged
