"""The jobs of a graph, read from the store page by page."""

from collections.abc import AsyncIterator, Sequence

from windlass.core.graphs.ids import node_id, node_number
from windlass.core.graphs.rules import is_unmet, name_in_meta, node_ended_reason
from windlass.core.groups.ids import before_member, member_index
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import parent_in_reason
from windlass.core.jobs.job import Job
from windlass.core.status import FINISHED, Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

PAGE = 500
MAX_COUNTED = 50_000
"""Max nodes and joins that one statement counts."""


async def member_ids(operator: OperatorStore, flow: JobId, status: Sequence[Status]) -> AsyncIterator[list[JobId]]:
    """Nodes and joins with one of these statuses, page by page, in the order of their ids."""
    wanted, after = JobFilter(parent=flow, status=tuple(status)), before_member(flow, 0)
    while ids := await operator.select(wanted, PAGE, after):
        after = ids[-1]
        yield [id_ for id_ in ids if member_index(flow, id_) is not None]
        if len(ids) < PAGE:
            return  # Jobs end meanwhile, so every further page would walk over all live nodes.


async def member_jobs(operator: OperatorStore, flow: JobId, status: Sequence[Status]) -> AsyncIterator[list[Job]]:
    """The jobs of the nodes and joins with one of these statuses."""
    async for ids in member_ids(operator, flow, status):
        yield [job for job in await operator.get(ids) if job is not None]


async def count_nodes(operator: OperatorStore, flow: JobId, status: Sequence[Status]) -> int:
    """How many nodes have one of these statuses."""
    found = 0
    async for ids in member_ids(operator, flow, status):
        found += sum(1 for id_ in ids if node_number(flow, id_) is not None)
    return found


async def have_all_completed(operator: OperatorStore, flow: JobId, nodes: int, jobs: int) -> bool:
    """Whether all jobs of a graph of more than a page have completed, by one count; False: unknown.

    `jobs` may include jobs that are no nodes and joins, such as the members of a group. Those are not counted.
    Mostly the last node ends last: before that a count would say nothing.
    """
    if not PAGE < jobs <= MAX_COUNTED:
        return False
    last = (await operator.get([node_id(flow, nodes - 1)]))[0]
    if last is None or last.status is not Status.COMPLETED:
        return False
    found = await operator.count_completed(flow, before_member(flow, 0), node_id(flow, nodes))
    return found == (jobs, None)


async def dropped_nodes(operator: OperatorStore, flow: JobId, nodes: int) -> dict[JobId, str | None]:
    """The dropped nodes of a flow without live nodes, and how they ended; None if that is unknown."""
    kept = {id_ async for ids in member_ids(operator, flow, tuple(FINISHED)) for id_ in ids}
    missing = [id_ for number in range(nodes) if (id_ := node_id(flow, number)) not in kept]
    found: dict[JobId, str | None] = {}
    for start in range(0, len(missing), PAGE):
        page = missing[start : start + PAGE]
        found |= zip(page, await operator.outcomes(page), strict=True)
    return found


async def first_lost(operator: OperatorStore, flow: JobId) -> str | None:
    """Why the flow is lost: a node is dead, or was cancelled for a reason of its own; None if it is not lost."""
    async for jobs in member_jobs(operator, flow, (Status.DEAD, Status.CANCELLED)):
        causes = await _causes(operator, flow, jobs)
        for job in jobs:
            if causes.get(job.id) is None and not is_unmet(job.reason):
                return node_ended_reason(job.id, name_in_meta(job.meta), job.status, job.reason)
    return None


async def _causes(operator: OperatorStore, flow: JobId, jobs: Sequence[Job]) -> dict[JobId, JobId | None]:
    """The jobs of the graph that caused the cancellation of these; None for those without such a job.

    Between a node that is a group or a map and that job are the jobs of the group.
    """
    causes = {job.id: parent_in_reason(job.reason) for job in jobs if job.status is Status.CANCELLED}
    while between := {id_ for id_ in causes.values() if id_ is not None and member_index(flow, id_) is None}:
        found = {job.id: job for job in await operator.get(list(between)) if job is not None}
        above = {id_: parent_in_reason(job.reason) for id_, job in found.items() if job.status is Status.CANCELLED}
        causes = {id_: above.get(cause) if cause in between else cause for id_, cause in causes.items() if cause}
    return causes


class Skips:
    """Finds the skipped jobs among the cancelled ones of a graph; parents are checked before their dependents."""

    def __init__(self, operator: OperatorStore, flow: JobId) -> None:
        self._operator, self._flow = operator, flow
        self._skipped: set[JobId] = set()

    async def among(self, jobs: Sequence[Job]) -> set[JobId]:
        """The jobs among these whose own condition, or one above them, cannot be met."""
        causes = await _causes(self._operator, self._flow, jobs)
        for job in jobs:
            if job.status is Status.CANCELLED and (is_unmet(job.reason) or causes.get(job.id) in self._skipped):
                self._skipped.add(job.id)
        return self._skipped & {job.id for job in jobs}
