"""app.flows: verbs on groups and graphs of jobs, each also with the prefix `a`."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from windlass.client.graphs.tree import graph_tree, group_tree
from windlass.client.graphs.verbs import cancel_graph, describe_graph, graph_record, retry_graph
from windlass.client.groups.members import ALIVE, LOST, first_live
from windlass.client.handle import CANCELLED
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.filters import check_limit, list_page
from windlass.client.verbs.group import Verbs
from windlass.core.codec import decode_object
from windlass.core.graphs.ids import FLOW_TYPE, FLOW_TYPES, MAX_NODES
from windlass.core.graphs.tree import FlowTree
from windlass.core.groups.flow import Flow, FlowCallback
from windlass.core.groups.ids import (
    Role,
    before_member,
    callback_id,
    is_group_id,
    member_index,
    named_group_id,
    watcher_id,
)
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId, JobRef, check_id, is_id
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import check_reason
from windlass.core.names import check_key
from windlass.core.status import Status
from windlass.errors import InvalidOption, WindlassError
from windlass.store.contract import OperatorStore
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
        operator = (await self._home._ready()).operator
        job = await self._look(operator, id)
        return await (describe_graph if job.type == FLOW_TYPE else _described)(operator, job)

    async def atree(self, id: JobRef, *, limit: int = 1000) -> FlowTree:
        """The nodes of a graph, with what each waits for; of a group its callbacks, and up to `limit` members."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_NODES:
            raise InvalidOption("limit", f"must be a whole number from 1 to {MAX_NODES}, not {limit!r}")
        operator = (await self._home._ready()).operator
        job = await self._look(operator, id)
        return await graph_tree(operator, job) if job.type == FLOW_TYPE else await group_tree(operator, job, limit)

    async def alist(self, *, limit: int = 50, cursor: str | None = None, queues: Sequence[str] = ()) -> Page[Flow]:
        """Groups and graphs, newest first; those with a name of yours may be anywhere in the list."""
        check_limit(limit)
        operator = (await self._home._ready()).operator
        page = await list_page(operator, JobFilter(types=FLOW_TYPES, queues=tuple(queues)), limit, cursor)
        ids = [job.id for job in page.items if is_group_id(job.id)]
        groups = [job for job in await operator.get(ids) if job is not None]  # a list has no progress
        flows = [graph_record(job) if job.type == FLOW_TYPE else _flow(job) for job in groups]
        return Page(tuple(flows), page.next_cursor)

    async def acancel(self, id: JobRef, reason: str = CANCELLED) -> Flow:
        """Cancel a group with its members, or a graph: waiting ones at once, running ones are asked to stop.

        `then` and `on_dead` do not run; `always`, and nodes with `when="ended"`, do when the others have ended.
        """
        check_reason(reason)
        operator = (await self._home._ready()).operator
        job = await self._look(operator, id)
        group = job.id
        if job.type == FLOW_TYPE:
            await cancel_graph(operator, group, reason)
        else:
            await self._cancel_group(operator, group, reason)
        await self._audit("flow.cancel", group, after={"reason": reason})
        return await self.aget(group)

    async def aretry(self, id: JobRef) -> Flow:
        """Run the dead and cancelled members of a group, or nodes of a graph, again; what follows waits again.

        Completed members and nodes stay, and so do callbacks that have run and nodes that are skipped.
        """
        operator = (await self._home._ready()).operator
        job = await self._look(operator, id)
        await (retry_graph if job.type == FLOW_TYPE else _retry_group)(operator, job)
        await self._audit("flow.retry", job.id)
        return await self.aget(job.id)

    async def _cancel_group(self, operator: OperatorStore, group: JobId, reason: str) -> None:
        await operator.cancel([watcher_id(group, Role.ON_DEAD)], reason)
        await operator.cancel([group], reason)
        async for ids in _members(operator, group, ALIVE):
            await operator.cancel(ids, reason)

    async def _look(self, operator: OperatorStore, id: JobRef) -> Job:
        name = id if isinstance(id, str) and not is_id(id.lower()) else None
        group = check_id(id) if name is None else named_group_id(check_key(name, "id"))
        job = (await operator.get([group]))[0]
        if job is None or job.type not in FLOW_TYPES or not is_group_id(group):
            raise FlowNotFound(group if name is None else name)
        return job

    get = blocking(aget)
    tree = blocking(atree)
    cancel = blocking(acancel)
    retry = blocking(aretry)
    list = blocking(alist)


async def _retry_group(operator: OperatorStore, job: Job) -> None:
    group = job.id
    async for ids in _members(operator, group, LOST):
        await operator.retry(ids)
    wanted = [group, watcher_id(group, Role.ON_DEAD)]
    lost = [each.id for each in await operator.get(wanted) if each is not None and each.status in LOST]
    if group in lost:
        await operator.retry(lost)


async def _members(operator: OperatorStore, group: JobId, status: tuple[Status, ...]) -> AsyncIterator[list[JobId]]:
    """Members with one of these statuses, page by page."""
    after = before_member(group, 0)
    while ids := await operator.select(JobFilter(parent=group, status=status), _BATCH, after):
        after = ids[-1]
        if members := [id_ for id_ in ids if member_index(group, id_) is not None]:
            yield members


async def _count(operator: OperatorStore, group: JobId, status: Status, first: int) -> int:
    """Members with this status, from an index on."""
    wanted, after, found = JobFilter(parent=group, status=(status,)), before_member(group, first), 0
    while ids := await operator.select(wanted, _BATCH, after):
        found += sum(1 for id_ in ids if member_index(group, id_) is not None)
        after = ids[-1]
    return found


def _payload(job: Job) -> GroupPayload:
    try:
        return msgspec.convert(job.payload, GroupPayload, dec_hook=decode_object)
    except msgspec.ValidationError:
        return GroupPayload(job.id, 0)


def _flow(job: Job) -> Flow:
    """What the group's own job tells."""
    payload = _payload(job)
    known = int(job.progress.done) if job.progress is not None else 0
    return Flow(
        id=job.id,
        name=payload.name or None,
        status=job.status,
        reason=job.reason,
        size=payload.size,
        completed=payload.size if job.status is Status.COMPLETED else known,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


async def _described(operator: OperatorStore, job: Job) -> Flow:
    flow = _flow(job)
    if job.status is not Status.COMPLETED:
        counted = flow.completed + await _count(operator, job.id, Status.COMPLETED, flow.completed)
        dead, cancelled = [
            await _count(operator, job.id, status, flow.completed) for status in (Status.DEAD, Status.CANCELLED)
        ]
        flow = msgspec.structs.replace(flow, completed=counted, dead=dead, cancelled=cancelled)
    callbacks = await operator.get([callback_id(job.id, role) for role in Role])
    named = zip(Role, callbacks, strict=True)
    told = [
        FlowCallback(role.name.lower(), each.id, each.type, each.status) for role, each in named if each is not None
    ]
    waits_for = await first_live(operator, job.id) if flow.live else None
    return msgspec.structs.replace(flow, callbacks=tuple(told), waits_for=waits_for)
