"""The states of a job as a state machine: how often and how long it was in each, and the current one."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.server.dashboard.figures.history import Phase

WAITS = (Status.SCHEDULED, Status.BLOCKED)
ENDS = (Status.COMPLETED, Status.DEAD, Status.CANCELLED)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A state that the job had, has, or will have next."""

    status: str
    times: int = 0
    """How often the job was in this state; 0: not yet."""
    seconds: float | None = None
    """The total time in this state; None for a moment."""
    since: datetime | None = None
    """When the job last entered this state."""
    is_now: bool = False


def machine(job: Job, phases: Sequence[Phase]) -> list[Node]:
    """The states in the order in which a job passes them; others only if it had them."""
    used = {each.state or each.status for each in phases} | {str(job.status)}
    order = [each for each in WAITS if each in used]
    order += [Status.PENDING, Status.RUNNING]
    order += [Status.FAILED] if Status.FAILED in used else []
    order += [each for each in ENDS if each in used and each != job.status]
    order += [each for each in ENDS if each == job.status] or [Status.COMPLETED]
    return [_node(job, status, phases) for status in order]


def _node(job: Job, status: Status, phases: Sequence[Phase]) -> Node:
    phases = [each for each in phases if (each.state or each.status) == status]
    lengths = [each.seconds for each in phases if each.seconds is not None]
    return Node(
        status=str(status),
        times=len(phases),
        seconds=sum(lengths) if lengths and not (job.finished and job.status is status) else None,
        since=phases[-1].since if phases else None,
        is_now=job.status is status,
    )
