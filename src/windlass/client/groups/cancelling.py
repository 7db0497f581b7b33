"""Cancel the members of a group, and the jobs that they stand for."""

from collections.abc import Sequence

from windlass.core.groups.ids import (
    MEMBER_TYPE,
    Role,
    before_added,
    before_member,
    callback_id,
    is_member_id,
    watcher_id,
)
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

BATCH = 500


async def end_group(operator: OperatorStore, group: JobId, reason: str) -> bool:
    """Cancel the group's own job, and its callbacks except `always`; returns whether the group ended here.

    `then` is cancelled before the group: an attempt that has just counted may complete the group meanwhile.
    """
    await operator.cancel([watcher_id(group, Role.ON_DEAD), callback_id(group, Role.THEN)], reason)
    return await cancel_job(operator, group, reason)


async def cancel_job(operator: OperatorStore, id_: JobId, reason: str) -> bool:
    """Cancel one job; returns whether it ended here. A running one is asked to stop, and its runner ends it."""
    (moved,) = await operator.cancel([id_], reason)
    return moved is not None and moved.done and moved.status is Status.CANCELLED


async def cancel_members(operator: OperatorStore, group: JobId, status: tuple[Status, ...], reason: str) -> None:
    """Cancel members with one of these statuses: waiting ones at once, running ones are asked to stop.

    It goes on until a page is empty, since a large enqueue on Redis may still be storing members. Those that members
    added, and callbacks, sort behind all of them, so they come last.
    """
    await _cancel_behind(operator, group, status, reason)
    for start, before in ((before_member(group, 0), before_added(group)), (before_added(group), None)):
        after = start
        while ids := await operator.select(JobFilter(parent=group, status=status, id_before=before), BATCH, after):
            after = ids[-1]
            if chosen := [id_ for id_ in ids if is_member_id(group, id_)]:
                await operator.cancel(chosen, reason)


async def _cancel_behind(operator: OperatorStore, group: JobId, status: tuple[Status, ...], reason: str) -> None:
    """Cancel the jobs of this group that its members stand for; the members are cancelled with them."""
    after: JobId | None = None
    wanted = JobFilter(parent=group, status=status, type=MEMBER_TYPE)
    while ids := await operator.select(wanted, BATCH, after):
        after = ids[-1]
        jobs = [job for job in await operator.get(ids) if job is not None]
        while jobs := await own_jobs_before(operator, group, jobs):
            if chosen := [job.id for job in jobs if job.status in status]:
                await operator.cancel(chosen, reason)


async def late_among(operator: OperatorStore, ids: Sequence[JobId]) -> list[Job]:
    """Those of these jobs that are live and were not asked to stop."""
    jobs = await operator.get(ids) if ids else []
    return [job for job in jobs if job is not None and is_late(job)]


def is_late(job: Job) -> bool:
    """Whether a job of a cancelled flow is live and was not asked to stop."""
    return not job.finished and not job.cancel_requested


async def late_behind(operator: OperatorStore, group: JobId, members: Sequence[JobId]) -> tuple[list[Job], bool]:
    """Jobs that these members stand for, live and not asked to stop; and whether all of them are known.

    On Redis a job may be stored after the member that waits for it, if that is in another queue.
    """
    late: list[Job] = []
    known = True
    jobs = [job for job in await operator.get(members) if job is not None] if members else []
    while parents := list(dict.fromkeys(parent for job in jobs for parent in job.parents)):
        found = dict(zip(parents, await operator.get(parents), strict=True))
        missing = [id_ for id_, job in found.items() if job is None]
        known = known and None not in (await operator.outcomes(missing) if missing else [])
        jobs = [job for job in found.values() if job is not None and job.flow == group]
        late += [job for job in jobs if is_late(job)]
    return late, known


async def own_jobs_before(operator: OperatorStore, group: JobId, jobs: list[Job]) -> list[Job]:
    """The parents of these jobs that belong to this group; other jobs with their key do not."""
    parents = list(dict.fromkeys(parent for job in jobs for parent in job.parents))
    found = [job for job in await operator.get(parents) if job is not None] if parents else []
    return [job for job in found if job.flow == group]
