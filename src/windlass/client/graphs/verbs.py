"""What `app.flows` does with graphs: counts, cancel and retry."""

from collections.abc import Sequence

import msgspec

from windlass.client.graphs.members import PAGE, Skips, count_nodes, member_ids, member_jobs
from windlass.client.groups.cancelled import (
    SearchBudget,
    cancel_if_it_holds,
    cancel_late_members,
    cancel_that_holds,
    end_noted_group,
    let_retried_run,
    note_cancel,
    note_end,
)
from windlass.client.groups.cancelling import cancel_job, cancel_members, is_late, late_among
from windlass.client.groups.members import ALIVE, LOST
from windlass.client.groups.retrying import group_payload, retry_group, retry_lost
from windlass.core.codec import decode_object
from windlass.core.graphs.ids import JOIN_TYPE, map_id, node_number
from windlass.core.graphs.rules import FlowPayload, When, ends_in_meta
from windlass.core.groups.flow import Flow
from windlass.core.groups.ids import GROUP_TYPE, before_member
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore, Store
from windlass.store.records import JobFilter

MAX_RETRIED = 50
"""Max jobs in one call: a store may need several statements for each."""
AT_WORK = (Status.RUNNING, Status.PENDING, Status.FAILED, Status.SCHEDULED)


def payload_of(job: Job) -> FlowPayload:
    """The arguments of a graph's own job, also if they were edited by hand."""
    try:
        return msgspec.convert(job.payload, FlowPayload, dec_hook=decode_object)
    except msgspec.ValidationError:
        return FlowPayload(job.id, 0, 0)


def graph_record(job: Job) -> Flow:
    """The record of a flow, from the graph's own job."""
    payload = payload_of(job)
    return Flow(
        id=job.id,
        kind="graph",
        name=payload.name or None,
        status=job.status,
        reason=job.reason,
        size=payload.nodes,
        completed=int(job.progress.done) if job.progress is not None else 0,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


async def describe_graph(operator: OperatorStore, job: Job) -> Flow:
    """The flow with the exact counts of its nodes, and the node that holds it up."""
    completed, dead = [await count_nodes(operator, job.id, (each,)) for each in (Status.COMPLETED, Status.DEAD)]
    cancelled, skipped = await _count_cancelled(operator, job.id)
    flow = graph_record(job)
    waits_for = None if job.finished else await _held_up_by(operator, job.id)
    return msgspec.structs.replace(
        flow, completed=completed, dead=dead, cancelled=cancelled, skipped=skipped, waits_for=waits_for
    )


async def _count_cancelled(operator: OperatorStore, flow: JobId) -> tuple[int, int]:
    """How many nodes are cancelled, and how many of them are skipped."""
    skips = Skips(operator, flow)
    cancelled = skipped = 0
    async for jobs in member_jobs(operator, flow, (Status.CANCELLED,)):
        unmet = await skips.among(jobs)
        nodes = [job.id for job in jobs if node_number(flow, job.id) is not None]
        skipped += len(unmet.intersection(nodes))
        cancelled += len(nodes) - len(unmet.intersection(nodes))
    return cancelled, skipped


async def _held_up_by(operator: OperatorStore, flow: JobId) -> JobId | None:
    """The first running node, or else the first waiting one."""
    for status in (AT_WORK, (Status.BLOCKED,)):
        found = await operator.select(JobFilter(parent=flow, status=status), 1, before_member(flow, 0))
        if found:
            return found[0]
    return None


async def cancel_graph(store: Store, flow: JobId, reason: str) -> None:
    """Cancel the live nodes, waiting ones first, except those that run after any end of their parents."""
    operator = store.operator
    if await cancel_job(operator, flow, reason):
        await note_end(store, flow)
    ids = [id_ async for page in member_ids(operator, flow, ALIVE) for id_ in page]
    for start in range(len(ids), 0, -PAGE):
        jobs = [job for job in await operator.get(ids[max(0, start - PAGE) : start]) if job is not None]
        await operator.cancel([job.id for job in reversed(jobs) if not _runs_anyway(job)], reason)
        for job in jobs:
            if (group := _group_of(flow, job)) is not None and not _runs_anyway(job):
                await _cancel_node(store, flow, group, reason)


async def _cancel_node(store: Store, flow: JobId, group: JobId, reason: str) -> None:
    """Cancel the members of a node, and the job that has them; a map may be adding some."""
    (job,) = await store.operator.get([group])
    if job is not None:
        await note_cancel(store, job, reason, flow)
    await end_noted_group(store, group, reason)
    await cancel_members(store.operator, group, ALIVE, reason)


async def cancel_late_nodes(store: Store, flow: JobId, reason: str, budget: SearchBudget) -> bool:
    """Cancel the jobs of a cancelled flow that are live and were not asked to stop; whether there were any.

    When the budget is used up, the others are left to the next search.
    """
    own = await late_among(store.operator, [flow])
    late: list[Job] = []
    async for jobs in member_jobs(store.operator, flow, ALIVE):
        late += [job for job in jobs if is_late(job) and not _runs_anyway(job)]
    if own and flow in (await cancel_if_it_holds(store, flow, own, reason) or ()):
        await note_end(store, flow)
    for start in range(len(late), 0, -PAGE):
        some = late[max(0, start - PAGE) : start]
        if await cancel_if_it_holds(store, flow, some[::-1], reason) is None:
            return False
        groups = [group for job in some if (group := _group_of(flow, job)) is not None]
        await _cancel_late_groups(store, flow, groups, reason, budget)
        if budget.over:
            break
    return bool(own or late)


async def cancel_late_groups(store: Store, flow: JobId, reason: str, budget: SearchBudget) -> bool:
    """Cancel the groups and maps of cancelled nodes that were stored after these; whether all of them are known.

    On Redis they may be in other queues than their nodes.
    """
    operator, known = store.operator, True
    async for jobs in member_jobs(operator, flow, (Status.CANCELLED,)):
        groups = [group for job in jobs if (group := _group_of(flow, job)) is not None and not _runs_anyway(job)]
        found = dict(zip(groups, await operator.get(groups), strict=True)) if groups else {}
        missing = [id_ for id_, job in found.items() if job is None]
        known = known and None not in (await operator.outcomes(missing) if missing else [])
        if not await _cancel_late_groups(store, flow, groups, reason, budget):
            return False
    return known


async def _cancel_late_groups(
    store: Store, flow: JobId, groups: Sequence[JobId], reason: str, budget: SearchBudget
) -> bool:
    """Cancel those of these groups and maps that are live; False if the time was over, or the flow was retried.

    Each gets a record of its own, from which the coordinator goes on with its members.
    """
    for late in await late_among(store.operator, groups):
        await note_cancel(store, late, reason, flow)
        if await cancel_that_holds(store, flow) is None:
            await let_retried_run(store, [late])
            return False
        await cancel_late_members(store, late.id, reason, budget)
        if budget.over:
            return False
    return True


def _runs_anyway(job: Job) -> bool:
    if job.type != JOIN_TYPE:
        return ends_in_meta(job.meta)
    return isinstance(job.payload, dict) and job.payload.get("when") == When.ENDED


def _group_of(flow: JobId, job: Job) -> JobId | None:
    """The job that has the members of this node, if it is a map or a group."""
    number = node_number(flow, job.id) if job.type == JOIN_TYPE else None
    return None if number is None else map_id(flow, number)


async def retry_graph(store: Store, flow: Job) -> None:
    """Run the dead and cancelled nodes again, parents before dependents; skipped ones stay."""
    operator, skips = store.operator, Skips(store.operator, flow.id)
    async for jobs in member_jobs(operator, flow.id, LOST):
        skipped = await skips.among(jobs)
        for level in _levels(flow.id, [job for job in jobs if job.id not in skipped]):
            for group in [each for job in level if (each := _group_of(flow.id, job)) is not None]:
                await _retry_node(store, group)
            for start in range(0, len(level), MAX_RETRIED):
                await retry_lost(operator, [job.id for job in level[start : start + MAX_RETRIED]])
    if flow.status in LOST:
        await retry_lost(operator, [flow.id])


async def _retry_node(store: Store, group: JobId) -> None:
    """The lost members of a node, the job that has them, and its callback, in calls of their own."""
    job = (await store.operator.get([group]))[0]
    if job is not None:
        await let_retried_run(store, [job])
        await retry_group(store, group_payload(job) if job.type == GROUP_TYPE else GroupPayload(group, 0))


def _levels(flow: JobId, jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs in levels, so that each is retried in a later call than its parents."""
    levels: dict[JobId, int] = {}
    found: list[list[Job]] = []
    for job in jobs:
        # The jobs that a group waits for are not among its node's parents.
        before = len(found) if _group_of(flow, job) is not None else 0
        levels[job.id] = level = max([before, *(1 + levels[id_] for id_ in job.parents if id_ in levels)])
        if level == len(found):
            found.append([])
        found[level].append(job)
    return found
