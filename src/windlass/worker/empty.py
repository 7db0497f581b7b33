"""--until-empty: whether anything is left to do soon."""

from collections.abc import Sequence

from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store

MOST_RUNNERS = 100
MOST_SCHEDULES = 100
HOLDING = (Status.PENDING, Status.RUNNING, Status.FAILED)


async def is_empty(store: Store, queues: Sequence[str]) -> bool:
    """Nothing pending, running, failed, or due within a second, and no tick that nobody has seen to.

    Paused queues do not count.
    """
    # Whoever died before us may have left a lease and jobs under it: nobody may be there to rescue them when we go.
    if await store.leases.rescue(MOST_RUNNERS):
        return False
    # The cheap look next: while there is work to be had, nothing needs to be counted.
    if await store.signals.work(queues, None):
        return False
    paused = {queue.name for queue in await store.queues.list() if queue.paused}
    counts = (await store.operator.counts()).queues
    served = [counts[queue] for queue in queues if queue in counts and queue not in paused]
    if any(queue[status] for queue in served for status in HOLDING):
        return False
    # Who ended between the two looks may have freed the key of one in line, whom nobody has let in yet.
    if any(queue[Status.BLOCKED] for queue in served) and await store.signals.work(queues, None):
        return False
    if any(queue[Status.SCHEDULED] for queue in served):
        due = (await store.jobs.admit(0)).next_due_in
        if due is not None and due <= SECOND:
            return False
    ticking = (await store.schedules.due(MOST_SCHEDULES)).schedules
    # One that cannot be read stays due for ever.
    return not any(each.problem is None and each.rules.job.queue in {*queues} - paused for each in ticking)
