"""held: what a runner runs, as far as the store knows."""

from windlass.store.records import Held
from windlass.store.redis.access import Access


async def held(access: Access, runner: str) -> list[Held]:
    """In all queues, in one trip."""
    replies = await access.calls("held", dict.fromkeys(await access.queue_names(), ([runner],)))
    return [Held(id_.decode(), attempt, queue) for queue, jobs in replies.items() for id_, attempt in jobs]
