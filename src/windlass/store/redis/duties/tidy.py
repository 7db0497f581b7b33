"""tidy: what a dead producer or mover has left half done is finished or cleared away."""

from collections.abc import Mapping, Sequence

from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access, QueueErrors
from windlass.store.redis.dependencies.dependents import finish_notifications, finish_parent_checks
from windlass.store.redis.duties.queue_rotation import QueueRotation
from windlass.store.redis.duties.repair import Repairs
from windlass.store.redis.enqueue.large_batch import drop_batch, store_batch
from windlass.store.redis.operator.move import finish_moves

IDLE = 5 * SECOND
"""As in parts/staged_batch.lua: a committed batch that nothing was stored of for this long is taken over."""
ABANDONED = 600 * SECOND
"""An uncommitted batch of this age is abandoned, and dropped."""


async def tidy(access: Access, repairs: Repairs, rounds: QueueRotation) -> None:
    """Large hand-ins, jobs that were to go to another queue, what children were to be told, and half-done scripts.

    Queues that cannot be reached hold up no others; that is told at the end.
    """
    names = await access.queue_names()
    replies = await access.call_each("unfinished_work", dict.fromkeys(await rounds.take(access, "tidy"), ((),)))
    away = {queue: reply for queue, reply in replies.items() if isinstance(reply, StoreUnavailable)}
    stale = {queue: reply[1:] for queue, reply in replies.items() if queue not in away}
    left = [queue for queue in stale if replies[queue][0]]
    troubles = list(away.values())
    for finish in (
        lambda: finish_moves(access, left),
        lambda: _finish_batches(access, stale),
        lambda: finish_parent_checks(access, left),
        lambda: finish_notifications(access, left),
        lambda: repairs.go_on(access, [queue for queue in names if queue not in away]),
    ):
        try:
            await finish()
        except StoreUnavailable as error:
            troubles.append(error)
    if troubles:
        raise troubles[0]


async def _finish_batches(access: Access, stale: Mapping[str, Sequence[tuple[bytes, int]]]) -> None:
    troubles = QueueErrors()
    for queue, batches in stale.items():
        try:
            for batch, committed in batches:
                await (store_batch if committed else drop_batch)(access, queue, batch.decode())
        except StoreUnavailable as error:
            troubles.append(error)
    if troubles:
        raise troubles[0]
