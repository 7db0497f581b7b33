"""Whether a job is skipped: cancelled as planned, because a condition in its graph cannot be met."""

from windlass.core.graphs.rules import is_unmet
from windlass.core.jobs.dependencies import parent_in_reason
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore

MAX_STEPS = 10_000
"""The limit of the search for the cause of a cancellation: a graph has no more nodes."""


async def is_skipped(operator: OperatorStore, job: Job) -> bool:
    """Whether the job is cancelled because its own condition, or one above it, cannot be met."""
    for _ in range(MAX_STEPS):
        if job.status is not Status.CANCELLED:
            return False
        if is_unmet(job.reason):
            return True
        parent = parent_in_reason(job.reason)
        above = None if parent is None else (await operator.get([parent]))[0]
        if above is None:
            return False
        job = above
    return False
