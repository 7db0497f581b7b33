"""Run the lost members of a group again, and with them the group."""

from collections.abc import Sequence

import msgspec

from windlass.client.groups.cancelling import BATCH, own_jobs_before
from windlass.client.groups.members import LOST, pages_of
from windlass.client.groups.opening import restart_time
from windlass.core.codec import decode_object
from windlass.core.groups.ids import Role, callback_id, watcher_id
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore, Store


def group_payload(job: Job) -> GroupPayload:
    """The arguments of a group's own job, also if they were edited by hand."""
    try:
        return msgspec.convert(job.payload, GroupPayload, dec_hook=decode_object)
    except msgspec.ValidationError:
        return GroupPayload(job.id, 0)


async def retry_group(store: Store, payload: GroupPayload) -> None:
    """Run the lost members again, and, if the group is lost, the group itself; its time limit starts anew.

    `then` of a completed group runs again if it is dead or was cancelled.
    """
    operator, group = store.operator, payload.group
    if payload.within or payload.open:
        await restart_time(store, group, None if payload.open else payload.size)
    async for ids in pages_of(operator, group, LOST, size=BATCH):
        await _retry_members(operator, group, ids)
    own = (await operator.get([group]))[0]
    if own is not None and own.status is not Status.COMPLETED:
        # An earlier retry may have been interrupted after the group: then only `on_dead` is lost.
        await retry_lost(operator, [group, watcher_id(group, Role.ON_DEAD)])
    await retry_lost(operator, [callback_id(group, Role.THEN)])  # if it was not cancelled with the group


async def retry_lost(operator: OperatorStore, ids: Sequence[JobId]) -> None:
    """Retry the dead and cancelled ones of these jobs, in the version that was read.

    The retry of a parent restores its dependents: a job that was lost a moment ago may run, or have completed, and
    must not run again.
    """
    while ids:
        lost = [job for job in await operator.get(ids) if job is not None and job.status in LOST]
        versions = {job.id: job.version for job in lost}
        moved = await operator.retry(list(versions), versions) if versions else []
        ids = [each.id for each in moved if each is not None and each.stale]


async def _retry_members(operator: OperatorStore, group: JobId, ids: list[JobId]) -> None:
    """Retry members. For one that represents another job, retry that job, which restores the member."""
    refused = [each for each in await operator.retry(ids) if each is not None and each.parent is not None]
    jobs = [job for job in await operator.get([each.id for each in refused]) if job is not None] if refused else []
    while jobs := await own_jobs_before(operator, group, jobs):
        lost = [job.id for job in jobs if job.status in LOST]
        if lost:
            await operator.retry(lost)
