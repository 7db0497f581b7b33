"""The job that a graph is: it ends when all of its nodes have.

Like a group it is a scheduled job; ends of nodes wake it (`client/groups/ends.py`), and without that it looks
by itself, at growing intervals.
"""

from windlass.client.graphs.members import count_nodes, first_lost
from windlass.client.groups.members import ENDED, first_live
from windlass.client.tasks.context import Context, entered
from windlass.core.control import Cancel, Snooze
from windlass.core.groups.rules import STORED_WITHIN, seconds_until_next_look
from windlass.core.ids import JobId
from windlass.core.moments import to_micros
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import OperatorStore


async def watch_flow(ctx: Context, flow: str, nodes: int, jobs: int, name: str = "", digest: str = "") -> None:
    """Return if all nodes have ended well; raise Cancel if one did not, Snooze while one is live."""
    try:
        operator = (await entered.get().home._ready()).operator
        done = await count_nodes(operator, flow, (Status.COMPLETED,))
        await ctx.progress(done, nodes)
        if await first_live(operator, flow) is None and await _all_stored(operator, ctx, flow, nodes):
            if (lost := await first_lost(operator, flow)) is not None:
                raise Cancel(lost)
            return
    except StoreUnavailable:
        pass  # it looks again, as if nothing were known
    raise Snooze(seconds_until_next_look(ctx.job.snoozes))


async def _all_stored(operator: OperatorStore, ctx: Context, flow: JobId, nodes: int) -> bool:
    """An enqueue over several queues takes a while to store every node. Later, one that is missing was dropped."""
    job = ctx.job
    age = to_micros(job.claimed_at or job.created_at) - to_micros(job.created_at)
    return age >= STORED_WITHIN or await count_nodes(operator, flow, ENDED) >= nodes
