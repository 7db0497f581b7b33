"""Lines for concurrency keys: what one call of a script was not allowed to do."""

from windlass.store.redis.access import Access

MOST_CALLS = 20
"""For one queue; tidy comes back."""


async def go_on(access: Access) -> None:
    """Let go on who could not in the call that freed their slots, as there were too many of them."""
    queues = await access.queue_names()
    for _ in range(MOST_CALLS):
        replies = await access.calls("move_up", {queue: ((),) for queue in queues})
        queues = [queue for queue, left in replies.items() if left]
        if not queues:
            break
