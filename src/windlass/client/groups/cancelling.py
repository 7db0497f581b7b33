"""Cancel the members of a group, and the jobs that they stand for."""

from windlass.client.groups.members import ALIVE
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


async def cancel_group(operator: OperatorStore, group: JobId, reason: str) -> bool:
    """Cancel the group, its members (also those of a map), and its callbacks except `always`.

    `then` is cancelled before the group: an attempt that has just counted may complete the group meanwhile. Returns
    whether the group ended here.
    """
    await operator.cancel([watcher_id(group, Role.ON_DEAD), callback_id(group, Role.THEN)], reason)
    ended = await cancel_job(operator, group, reason)
    await cancel_members(operator, group, ALIVE, reason)
    return ended


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
    standing = JobFilter(parent=group, status=status, type=MEMBER_TYPE)
    while ids := await operator.select(standing, BATCH, after):
        after = ids[-1]
        jobs = [job for job in await operator.get(ids) if job is not None]
        while jobs := await own_jobs_before(operator, group, jobs):
            if chosen := [job.id for job in jobs if job.status in status]:
                await operator.cancel(chosen, reason)


async def own_jobs_before(operator: OperatorStore, group: JobId, jobs: list[Job]) -> list[Job]:
    """The parents of these jobs that belong to this group; other jobs with their key do not."""
    parents = list(dict.fromkeys(parent for job in jobs for parent in job.parents))
    found = [job for job in await operator.get(parents) if job is not None] if parents else []
    return [job for job in found if job.flow == group]
