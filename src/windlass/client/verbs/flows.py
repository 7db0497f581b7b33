"""app.flows: verbs on groups of jobs, each also with the prefix `a`."""

import msgspec

from windlass.client.groups.cancelling import cancel_members, own_jobs_before
from windlass.client.groups.members import ALIVE, LOST, count_added, first_live, pages_of
from windlass.client.groups.opening import read_opening, restart_time
from windlass.client.groups.results import ADDED, SIZE
from windlass.client.handle import CANCELLED
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.filters import check_limit, list_page
from windlass.client.verbs.group import Verbs
from windlass.core.codec import decode_object
from windlass.core.groups.flow import Flow, FlowCallback
from windlass.core.groups.ids import (
    GROUP_TYPE,
    Role,
    before_member,
    callback_id,
    is_group_id,
    named_group_id,
    watcher_id,
)
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId, JobRef, check_id, is_id
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import check_reason
from windlass.core.status import Status
from windlass.errors import WindlassError
from windlass.store.contract import OperatorStore, Store
from windlass.store.records import JobFilter, Page

_BATCH = 500


class FlowNotFound(WindlassError):
    """No group has this id or name."""

    code = "flow_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no flow {name!r}")
        self.name = name


class Flows(Verbs):
    """Read groups and act on them: by the `id` that their producer gave them, or by that of a handle."""

    async def aget(self, id: JobRef) -> Flow:
        """One group, with the exact counts of its members; raises FlowNotFound."""
        store = await self._home._ready()
        return await _described(store, await self._look(store.operator, id))

    async def alist(self, *, limit: int = 50, cursor: str | None = None) -> Page[Flow]:
        """Groups, newest first, without their callbacks; those with an `id` of yours may be anywhere in the list."""
        check_limit(limit)
        operator = (await self._home._ready()).operator
        page = await list_page(operator, JobFilter(type=GROUP_TYPE), limit, cursor)
        groups = [job for job in page.items if is_group_id(job.id)]
        return Page(tuple(map(_flow, groups)), page.next_cursor)

    async def acancel(self, id: JobRef, reason: str = CANCELLED) -> Flow:
        """Cancel a group with its members: waiting ones at once, running ones are asked to stop.

        `then` and `on_dead` do not run; `always` does, when all members have ended.
        """
        check_reason(reason)
        operator = (await self._home._ready()).operator
        group = (await self._look(operator, id)).id
        await operator.cancel([watcher_id(group, Role.ON_DEAD)], reason)
        await operator.cancel([group], reason)
        await cancel_members(operator, group, ALIVE, reason)
        if await first_live(operator, group) is None:
            await operator.run_now([watcher_id(group, Role.ALWAYS)])
        await self._audit("flow.cancel", group, after={"reason": reason})
        return await self.aget(group)

    async def aretry(self, id: JobRef) -> Flow:
        """Run the dead and cancelled members of a group again; `then` waits for them again.

        Completed members stay, and so do callbacks that have run. A group that completed stays as it is. One that was
        abandoned is open again, so that its producer can go on.
        """
        store = await self._home._ready()
        operator, job = store.operator, await self._look(store.operator, id)
        group, payload = job.id, _payload(job)
        if payload.within or payload.open:
            await restart_time(store, group, None if payload.open else payload.size)
        async for ids in pages_of(operator, group, LOST, size=_BATCH):
            await _retry_members(operator, group, ids)
        wanted = [group, watcher_id(group, Role.ON_DEAD)]
        lost = [job.id for job in await operator.get(wanted) if job is not None and job.status in LOST]
        if group in lost:
            await operator.retry(lost)
        await self._audit("flow.retry", group)
        return await self.aget(group)

    async def _look(self, operator: OperatorStore, id: JobRef) -> Job:
        name = id if isinstance(id, str) and not is_id(id.lower()) else None
        group = check_id(id) if name is None else named_group_id(name)
        job = (await operator.get([group]))[0]
        if job is None or job.type != GROUP_TYPE or not is_group_id(group):
            raise FlowNotFound(group if name is None else name)
        return job

    get = blocking(aget)
    cancel = blocking(acancel)
    retry = blocking(aretry)
    list = blocking(alist)


async def _retry_members(operator: OperatorStore, group: JobId, ids: list[JobId]) -> None:
    """Run them again; of those that stand for another job, that job, which brings them back."""
    refused = [each for each in await operator.retry(ids) if each is not None and each.parent is not None]
    jobs = [job for job in await operator.get([each.id for each in refused]) if job is not None] if refused else []
    while jobs := await own_jobs_before(operator, group, jobs):
        lost = [job.id for job in jobs if job.status in LOST]
        if lost:
            await operator.retry(lost)


def _payload(job: Job) -> GroupPayload:
    try:
        return msgspec.convert(job.payload, GroupPayload, dec_hook=decode_object)
    except msgspec.ValidationError:
        return GroupPayload(job.id, 0)


def _flow(job: Job) -> Flow:
    """What the group's own job tells."""
    payload = _payload(job)
    known = int(job.progress.done) if job.progress is not None else 0
    told = job.result if isinstance(job.result, dict) and job.status is Status.COMPLETED else {}
    size = int(told.get(SIZE, payload.size)) + int(told.get(ADDED, 0)) or known
    return Flow(
        id=job.id,
        name=payload.name or None,
        status=job.status,
        reason=job.reason,
        size=size,
        completed=size if job.status is Status.COMPLETED and payload.need is None else known,
        need=payload.need,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


async def _described(store: Store, job: Job) -> Flow:
    operator, payload = store.operator, _payload(job)
    flow = _flow(job)
    if job.status is not Status.COMPLETED or payload.need is not None:
        flow = await _counted(operator, flow, payload)
    if payload.open:
        opening = await read_opening(store, job.id)
        flow = msgspec.structs.replace(flow, sealed=opening is None or opening.size is not None)
    callbacks = await operator.get([callback_id(job.id, role) for role in Role])
    named = zip(Role, callbacks, strict=True)
    told = [
        FlowCallback(role.name.lower(), each.id, each.type, each.status) for role, each in named if each is not None
    ]
    waits_for = await first_live(operator, job.id) if flow.live else None
    return msgspec.structs.replace(flow, callbacks=tuple(told), waits_for=waits_for)


async def _counted(operator: OperatorStore, flow: Flow, payload: GroupPayload) -> Flow:
    """With exact counts; members that the group knows to have completed are not read again."""
    known = flow.completed if payload.need is None else 0
    after = before_member(flow.id, known)
    completed, dead, cancelled = [
        await count_added(operator, flow.id, (status,), after)
        for status in (Status.COMPLETED, Status.DEAD, Status.CANCELLED)
    ]
    live = await count_added(operator, flow.id, ALIVE, after) if payload.open else 0
    size = max(payload.size, known + completed + dead + cancelled + live)
    return msgspec.structs.replace(flow, size=size, completed=known + completed, dead=dead, cancelled=cancelled)
