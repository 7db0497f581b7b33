"""tidy: what a dead producer or mover has left half done is finished or cleared away."""

from collections.abc import Mapping, Sequence

from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.redis.access import Access
from windlass.store.redis.bulk import unfold, unstage
from windlass.store.redis.heirs import finish_asking, finish_telling
from windlass.store.redis.move import finish_moves

IDLE = 5 * SECOND
"""A producer that has not unfolded anything for so long is helped: it may be dead."""
ABANDONED = 600 * SECOND
"""One that has not staged anything for so long is dead, and had not committed."""


async def tidy(access: Access) -> None:
    """Large hand-ins, jobs that were to go to another queue, and what children were to be told.

    Queues that cannot be reached hold up no others; that is told at the end.
    """
    replies = await access.each("stale", dict.fromkeys(await access.queue_names(), ((IDLE, ABANDONED),)))
    troubles = [reply for reply in replies.values() if isinstance(reply, StoreUnavailable)]
    stale = {queue: reply for queue, reply in replies.items() if not isinstance(reply, StoreUnavailable)}
    for finish in (
        lambda: finish_moves(access, list(stale)),
        lambda: _finish_batches(access, stale),
        lambda: finish_asking(access, list(stale)),
        lambda: finish_telling(access, list(stale)),
    ):
        try:
            await finish()
        except StoreUnavailable as error:
            troubles.append(error)
    if troubles:
        raise troubles[0]


async def _finish_batches(access: Access, stale: Mapping[str, Sequence[tuple[bytes, int]]]) -> None:
    for queue, batches in stale.items():
        for batch, committed in batches:
            await (unfold if committed else unstage)(access, queue, batch.decode())
