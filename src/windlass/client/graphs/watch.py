"""The job of a graph: it ends when all of its nodes have ended.

Like a group it is a scheduled job; ends of nodes wake it (`client/groups/ends.py`), and it also runs by itself at
growing intervals.
"""

from collections.abc import Mapping

from windlass.client.graphs.members import count_nodes, dropped_nodes, first_lost, have_all_completed
from windlass.client.groups.members import first_live
from windlass.client.tasks.context import Context, entered
from windlass.core.control import Cancel, Snooze
from windlass.core.graphs.rules import node_ended_reason
from windlass.core.groups.rules import seconds_until_next_look, stored_within
from windlass.core.ids import JobId
from windlass.core.moments import Micros, to_micros
from windlass.core.status import Status
from windlass.errors import StoreUnavailable


async def watch_flow(ctx: Context, flow: str, nodes: int, jobs: int, name: str = "", digest: str = "") -> None:
    """Return if all nodes have completed or are skipped; raise Cancel if one is lost, Snooze while one is live."""
    try:
        operator = (await entered.get().home._ready()).operator
        completed = await have_all_completed(operator, flow, nodes, jobs)
        done = nodes if completed else await count_nodes(operator, flow, (Status.COMPLETED,))
        await ctx.progress(done, nodes)
        if done >= nodes:
            return  # All nodes have completed: the common case needs no more reads.
        if await first_live(operator, flow) is None:
            dropped = await dropped_nodes(operator, flow, nodes)
            if None not in dropped.values() or _age(ctx) >= stored_within(jobs):
                if (lost := await first_lost(operator, flow) or _lost_before(dropped)) is not None:
                    raise Cancel(lost)
                return
    except StoreUnavailable:
        pass  # the next run starts without what this one knows
    raise Snooze(seconds_until_next_look(ctx.job.snoozes))


def _age(ctx: Context) -> Micros:
    """The age of the flow at this claim. After `stored_within` an unknown node was dropped."""
    job = ctx.job
    return to_micros(job.claimed_at or job.created_at) - to_micros(job.created_at)


def _lost_before(dropped: Mapping[JobId, str | None]) -> str | None:
    """Why the flow is lost to a dropped node that was dead; a dropped cancelled node may have been skipped."""
    dead = next((id_ for id_, outcome in dropped.items() if outcome == Status.DEAD), None)
    return None if dead is None else node_ended_reason(dead, None, Status.DEAD, "it is not kept any more")
