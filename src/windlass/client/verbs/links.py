"""The links of a chain, found from any of them: each has the id of the one before it, and children have an index."""

from collections.abc import Callable, Iterator
from typing import overload

import msgspec

from windlass.client.groups.members import first_live
from windlass.client.runtime.offloaded import without_values
from windlass.core.graphs.ids import WATCHER_TYPES
from windlass.core.graphs.rules import node_in_reason
from windlass.core.groups.rules import member_in_reason
from windlass.core.ids import JobId, is_id
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, parent_in_reason
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

MAX_CHILDREN = 100
MAX_STEPS = 1000


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a chain that is kept, in order, and the position of a job in it: a sequence of jobs."""

    jobs: tuple[Job, ...]
    number: int
    """Of the requested job, from 1."""
    begins: bool = True
    """Whether the first of them is the first of the chain; older ones may be dropped."""
    ends: bool = True
    """Whether the last of them is the last of the chain."""

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    @overload
    def __getitem__(self, index: int, /) -> Job: ...
    @overload
    def __getitem__(self, index: slice, /) -> tuple[Job, ...]: ...
    def __getitem__(self, index: int | slice, /) -> Job | tuple[Job, ...]:
        return self.jobs[index]

    @property
    def before(self) -> Job | None:
        """The link before it."""
        return self.jobs[self.number - 2] if self.number > 1 else None

    @property
    def after(self) -> Job | None:
        """The link after it."""
        return self.jobs[self.number] if self.number < len(self.jobs) else None


async def links_of(operator: OperatorStore, job: Job, most: int) -> Links:
    """Back to the first link and forward to the last, at most `most` steps each way."""
    up, down = [job], [job]
    while up[-1].parents and len(up) <= most and (found := await _parent(operator, up[-1])) is not None:
        up.append(found)
    following = await _child(operator, job, job)
    while following is not None and len(down) <= most:
        down.append(following)
        following = await _child(operator, following, job)
    jobs = (*reversed(up), *down[1:])
    return Links(
        jobs=tuple(map(without_values, jobs)), number=len(up), begins=not jobs[0].parents, ends=following is None
    )


async def _parent(operator: OperatorStore, job: Job) -> Job | None:
    return (await operator.get([job.parents[0]]))[0]


async def _child(operator: OperatorStore, job: Job, origin: Job) -> Job | None:
    """Its dependent, of its own chain if there are several; children that it enqueued itself have no parents."""
    page = await operator.list(JobFilter(parent=job.id), MAX_CHILDREN, None)
    dependents = [each for each in page.items if job.id in each.parents]
    if not dependents and page.next_cursor is not None:
        # Links are older than the children that the job has enqueued since.
        oldest = await operator.get(await operator.select(JobFilter(parent=job.id), MAX_CHILDREN, None))
        dependents = [each for each in oldest if each is not None and job.id in each.parents]
    return next((each for each in dependents if each.flow == origin.flow), dependents[0] if dependents else None)


async def cause_of(operator: OperatorStore, job: Job) -> Job | None:
    """The job that caused a cancellation: the first of the cancelled parents.

    None if the job was not cancelled because of another, or that one is not kept.
    """
    return await _last_of(operator, _cancelled_by, job, MAX_STEPS)


async def front_of(operator: OperatorStore, job: Job, most: int = MAX_STEPS) -> Job | None:
    """The job that its chain or flow waits for; None if it waits for none, or that one is more than `most` away.

    Of several parents it is the first that has not ended: the others hold nothing up.
    """
    front = job
    for _ in range(most):
        if not _waits_for_parents(front):
            break
        parents = await operator.get(front.parents)
        live = next((each for each in parents if each is not None and not each.finished), None)
        if live is None:
            return None
        front = live
    return None if front is job or _waits_for_parents(front) else front


async def held_up_by(operator: OperatorStore, job: Job) -> Job | None:
    """What ended or holds up a job: the first cause of its cancellation, the link its chain is at, a live member."""
    found = await cause_of(operator, job) or await front_of(operator, job)
    group = found or job
    if group.type not in WATCHER_TYPES or group.finished:
        return found
    live = await first_live(operator, group.id)
    return found if live is None else (await operator.get([live]))[0]


async def _last_of(operator: OperatorStore, step: Callable[[Job], JobId | None], job: Job, most: int) -> Job | None:
    """The job after `most` steps, or after the last that there is; None if there is no step."""
    last, following = None, step(job)
    for _ in range(most):
        if following is None or (found := (await operator.get([following]))[0]) is None:
            break
        last, following = found, step(found)
    return last


def _cancelled_by(job: Job) -> JobId | None:
    if job.status is not Status.CANCELLED:
        return None
    found = parent_in_reason(job.reason) or member_in_reason(job.reason) or node_in_reason(job.reason)
    return found if found is not None and is_id(found) else None  # an operator may give a reason that reads alike


def _waits_for_parents(job: Job) -> bool:
    return job.status is Status.BLOCKED and job.reason == WAITING_FOR_PARENT
