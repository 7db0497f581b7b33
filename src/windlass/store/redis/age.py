"""age: who has waited long moves up to the next higher priority at which jobs wait."""

from windlass.core.job import HIGHEST_PRIORITY
from windlass.store.redis.access import Access

PORTION = 100
"""Jobs in one call of a script: it keeps all others waiting."""
_NONE = -HIGHEST_PRIORITY - 1
"""Below every urgency: where a queue begins, and no priority to move up to yet."""


async def age(access: Access, limit: int) -> int:
    """Up to so many, each by one step: how many. Queues are asked together, and share what may move."""
    aged = 0
    going = dict.fromkeys(await access.queue_names(), (_NONE, _NONE))
    while going and aged < limit:
        asked = list(going)[: limit - aged]
        portion = min(PORTION, (limit - aged) // len(asked))
        replies = await access.calls("age", {queue: ((portion, *going[queue]),) for queue in asked})
        for queue, (moved, *place) in replies.items():
            aged += moved
            if place:
                going[queue] = (place[0], place[1])
            else:
                del going[queue]
    return aged
