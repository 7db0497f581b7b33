"""tidy: what a dead producer or mover has left half done is finished or cleared away."""

from windlass.core.moments import SECOND
from windlass.store.redis.access import Access
from windlass.store.redis.bulk import unfold, unstage
from windlass.store.redis.heirs import finish_for_the_dead
from windlass.store.redis.move import finish_moves

IDLE = 5 * SECOND
"""A producer that has not unfolded anything for so long is helped: it may be dead."""
ABANDONED = 600 * SECOND
"""One that has not staged anything for so long is dead, and had not committed."""


async def tidy(access: Access) -> None:
    """Large hand-ins, jobs that were to go to another queue, and what children were to be told."""
    names = await access.queue_names()
    await finish_moves(access, names)
    replies = await access.calls("stale", dict.fromkeys(names, ((IDLE, ABANDONED),)))
    for queue, batches in replies.items():
        for batch, committed in batches:
            await (unfold if committed else unstage)(access, queue, batch.decode())
    await finish_for_the_dead(access, names)
