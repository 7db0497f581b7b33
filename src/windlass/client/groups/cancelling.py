"""Cancel the members of a group, and the jobs that they stand for."""

from windlass.client.groups.members import ALIVE, pages_of
from windlass.core.groups.ids import MEMBER_TYPE, Role, callback_id, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

BATCH = 500


async def cancel_group(operator: OperatorStore, group: JobId, reason: str) -> None:
    """Cancel the group, its members (also those of a map), and its callbacks except `always`.

    `then` is cancelled before the group: an attempt that has just counted may complete the group meanwhile.
    """
    await operator.cancel([watcher_id(group, Role.ON_DEAD), callback_id(group, Role.THEN)], reason)
    await operator.cancel([group], reason)
    await cancel_members(operator, group, ALIVE, reason)


async def cancel_members(operator: OperatorStore, group: JobId, status: tuple[Status, ...], reason: str) -> None:
    """Cancel members with one of these statuses: waiting ones at once, running ones are asked to stop."""
    await _cancel_behind(operator, group, status, reason)
    async for ids in pages_of(operator, group, status, size=BATCH):
        if ids:
            await operator.cancel(ids, reason)


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
