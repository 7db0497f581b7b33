"""The links of a chain, found from any one of them: each knows the one before it, and children are found by index."""

from collections.abc import Callable

import msgspec

from windlass.client.aside import without_values
from windlass.core.chain import AWAITING, parent_in
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

MOST_CHILDREN = 100
MOST_FALLEN = 1000


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """A chain as far as it is kept, in its order, and where in it a job stands."""

    jobs: tuple[Job, ...]
    place: int
    """Of the job that was asked about, from 1."""
    begins: bool = True
    """Whether the first of them is the first of the chain: older ones may not be kept any more."""
    ends: bool = True
    """Whether it was followed to its end; False: there are more."""

    @property
    def before(self) -> Job | None:
        """The link before it."""
        return self.jobs[self.place - 2] if self.place > 1 else None

    @property
    def after(self) -> Job | None:
        """The link after it."""
        return self.jobs[self.place] if self.place < len(self.jobs) else None


async def links_of(operator: OperatorStore, job: Job, most: int) -> Links:
    """Up to its first link and down to its last, at most so many steps each way."""
    up, down = [job], [job]
    while up[-1].parents and len(up) <= most and (found := await _parent(operator, up[-1])) is not None:
        up.append(found)
    following = await _child(operator, job, job)
    while following is not None and len(down) <= most:
        down.append(following)
        following = await _child(operator, following, job)
    jobs = (*reversed(up), *down[1:])
    return Links(
        jobs=tuple(map(without_values, jobs)), place=len(up), begins=not jobs[0].parents, ends=following is None
    )


async def _parent(operator: OperatorStore, job: Job) -> Job | None:
    return (await operator.get([job.parents[0]]))[0]


async def _child(operator: OperatorStore, job: Job, origin: Job) -> Job | None:
    """Who waits for it, of its own chain if there are several; children that it handed in itself wait for nobody."""
    page = await operator.list(JobFilter(parent=job.id), MOST_CHILDREN, None)
    heirs = [each for each in page.items if job.id in each.parents]
    return next((each for each in heirs if each.flow == origin.flow), heirs[0] if heirs else None)


async def cause_of(operator: OperatorStore, job: Job) -> Job | None:
    """Because of which job one was called off: not the link before it, which may have fallen too, but the first.

    None, if it was not called off by another, or that is not kept any more.
    """
    return await _last_of(operator, _felled_by, job, MOST_FALLEN)


async def front_of(operator: OperatorStore, job: Job, most: int = MOST_FALLEN) -> Job | None:
    """At which link its chain stands, for which all between wait. None, if it waits for none, or that is too far."""
    front = await _last_of(operator, _waits_for, job, most)
    return None if front is None or _waits_for(front) is not None else front


async def _last_of(operator: OperatorStore, step: Callable[[Job], JobId | None], job: Job, most: int) -> Job | None:
    """The job to which a number of steps leads, or as many as there are; None, if there is none."""
    last, following = None, step(job)
    for _ in range(most):
        if following is None or (found := (await operator.get([following]))[0]) is None:
            break
        last, following = found, step(found)
    return last


def _felled_by(job: Job) -> JobId | None:
    return parent_in(job.reason) if job.status is Status.CANCELLED else None


def _waits_for(job: Job) -> JobId | None:
    return job.parents[0] if job.parents and job.status is Status.BLOCKED and job.reason == AWAITING else None
