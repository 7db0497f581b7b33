"""The jobs of a graph, read from the store page by page."""

from collections.abc import AsyncIterator, Sequence

from windlass.core.graphs.ids import node_number
from windlass.core.graphs.rules import is_unmet
from windlass.core.groups.ids import before_member, member_index
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import parent_in_reason
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

PAGE = 500


async def member_ids(operator: OperatorStore, flow: JobId, status: Sequence[Status]) -> AsyncIterator[list[JobId]]:
    """Nodes and joins with one of these statuses, page by page, in the order of their ids."""
    wanted, after = JobFilter(parent=flow, status=tuple(status)), before_member(flow, 0)
    while ids := await operator.select(wanted, PAGE, after):
        after = ids[-1]
        yield [id_ for id_ in ids if member_index(flow, id_) is not None]


async def member_jobs(operator: OperatorStore, flow: JobId, status: Sequence[Status]) -> AsyncIterator[list[Job]]:
    """The same, as jobs."""
    async for ids in member_ids(operator, flow, status):
        yield [job for job in await operator.get(ids) if job is not None]


async def count_nodes(operator: OperatorStore, flow: JobId, status: Sequence[Status]) -> int:
    """How many nodes have one of these statuses."""
    found = 0
    async for ids in member_ids(operator, flow, status):
        found += sum(1 for id_ in ids if node_number(flow, id_) is not None)
    return found


async def first_lost(operator: OperatorStore, flow: JobId) -> str | None:
    """Why the flow did not go well: a node that is dead, or was cancelled for its own sake; None if it did."""
    async for jobs in member_jobs(operator, flow, (Status.DEAD, Status.CANCELLED)):
        for job in jobs:
            if is_root(flow, job):
                return f"its member {job.id} is {job.status}" + (f": {job.reason}" if job.reason else "")
    return None


def is_root(flow: JobId, job: Job) -> bool:
    """Whether a dead or cancelled job of a graph is lost for its own sake: not skipped, nor with another."""
    if job.status is Status.DEAD:
        return True
    parent = parent_in_reason(job.reason)
    return not is_unmet(job.reason) and (parent is None or member_index(flow, parent) is None)


class Skips:
    """Which cancelled jobs of a graph are skipped; each comes after those that it waits for."""

    def __init__(self) -> None:
        self._skipped: set[JobId] = set()

    def is_skipped(self, job: Job) -> bool:
        """Whether its own condition, or one above it, cannot be met."""
        skipped = job.status is Status.CANCELLED and (
            is_unmet(job.reason) or parent_in_reason(job.reason) in self._skipped
        )
        if skipped:
            self._skipped.add(job.id)
        return skipped
