"""app.flows: verbs on groups and graphs of jobs, each also with the prefix `a`."""

from collections.abc import Sequence

import msgspec

from windlass.client.graphs.tree import graph_tree, group_tree
from windlass.client.graphs.verbs import cancel_graph, describe_graph, graph_record, retry_graph
from windlass.client.groups.cancelled import end_noted_group, let_retried_run, note_cancel, wake_always
from windlass.client.groups.cancelling import cancel_members
from windlass.client.groups.members import ALIVE, count_added, first_live
from windlass.client.groups.opening import close_group, read_opening
from windlass.client.groups.results import ADDED, SIZE
from windlass.client.groups.retrying import group_payload, retry_group
from windlass.client.handle import CANCELLED
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.filters import check_limit
from windlass.client.verbs.find import find_flow
from windlass.client.verbs.flow_list import list_flows
from windlass.client.verbs.group import Verbs
from windlass.core.graphs.ids import FLOW_TYPE, FLOW_TYPES, MAX_NODES
from windlass.core.graphs.tree import FlowTree
from windlass.core.groups.flow import Flow, FlowCallback
from windlass.core.groups.ids import (
    Role,
    before_member,
    callback_id,
    is_group_id,
    named_group_id,
)
from windlass.core.groups.rules import GroupPayload, noted_loss
from windlass.core.ids import JobRef, check_id, is_id, is_part
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import check_reason
from windlass.core.names import check_key
from windlass.core.status import Status
from windlass.errors import InvalidOption, JobNotFound, WindlassError
from windlass.store.contract import OperatorStore, Store
from windlass.store.records import Page


class FlowNotFound(WindlassError):
    """No group or graph has this id or name."""

    code = "flow_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no flow {name!r}")
        self.name = name


class Flows(Verbs):
    """Read groups and graphs and act on them: by the name that their producer gave them, by id or by handle."""

    async def aget(self, id: JobRef) -> Flow:
        """One group or graph, with the exact counts of its members or nodes; raises FlowNotFound."""
        store = await self._home._ready()
        job = await self._look(store.operator, id)
        if job.type == FLOW_TYPE:
            return await describe_graph(store.operator, job)
        return await _described(store, job)

    async def afind(self, part: str) -> str:
        """The id of the flow with this name or id, else of the only one whose id begins, or ends, with this text."""
        operator = (await self._home._ready()).operator
        try:
            return (await self._look(operator, part)).id
        except FlowNotFound:
            if not is_part(part.lower().strip("…")):
                raise
        try:
            return await find_flow(operator, part)
        except JobNotFound:
            raise FlowNotFound(part) from None

    async def atree(self, id: JobRef, *, limit: int = 1000) -> FlowTree:
        """The nodes of a graph, with what each waits for; of a group its callbacks, and up to `limit` members."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_NODES:
            raise InvalidOption("limit", f"must be a whole number from 1 to {MAX_NODES}, not {limit!r}")
        operator = (await self._home._ready()).operator
        job = await self._look(operator, id)
        return await graph_tree(operator, job) if job.type == FLOW_TYPE else await group_tree(operator, job, limit)

    async def alist(self, *, limit: int = 50, cursor: str | None = None, queues: Sequence[str] = ()) -> Page[Flow]:
        """Groups and graphs, newest first. Of more than 1,000 with a name of yours some come last, in no order."""
        check_limit(limit)
        operator = (await self._home._ready()).operator
        page = await list_flows(operator, limit, cursor, queues)
        ids = [job.id for job in page.items]
        groups = [job for job in await operator.get(ids) if job is not None]  # a list has no progress
        flows = [graph_record(job) if job.type == FLOW_TYPE else _flow(job) for job in groups]
        return Page(tuple(flows), page.next_cursor)

    async def acancel(self, id: JobRef, reason: str = CANCELLED) -> Flow:
        """Cancel a group with its members, or a graph: waiting ones at once, running ones are asked to stop.

        `then` and `on_dead` do not run; `always`, and nodes with `when="ended"`, do when the others have ended. Jobs
        that its producer is still storing are cancelled too, after a few seconds at the latest.
        """
        check_reason(reason)
        store = await self._home._ready()
        job = await self._look(store.operator, id)
        await cancel_flow(store, job, reason)
        await self._audit("flow.cancel", job.id, after={"reason": reason})
        return await self.aget(job.id)

    async def aretry(self, id: JobRef) -> Flow:
        """Run the dead and cancelled members of a group, or nodes of a graph, again; what follows waits again.

        Completed members and nodes stay, and so do callbacks that have completed and nodes that are skipped. `then`
        of a completed group runs again if it is dead. An abandoned group is open again, so that its producer can go
        on.
        """
        store = await self._home._ready()
        job = await self._look(store.operator, id)
        await let_retried_run(store, [job])
        if job.type == FLOW_TYPE:
            await retry_graph(store, job)
        else:
            await retry_group(store, group_payload(job))
        await self._audit("flow.retry", job.id)
        return await self.aget(job.id)

    async def _look(self, operator: OperatorStore, id: JobRef) -> Job:
        """The flow with this text as its id or as its name; a name may look like an id."""
        name = check_key(id, "id") if isinstance(id, str) else None
        ids = [named_group_id(name)] if name is not None else []
        if name is None or is_id(name.lower()):
            ids = [check_id(id), *ids]
        for group, job in zip(ids, await operator.get(ids), strict=True):
            if job is not None and job.type in FLOW_TYPES and is_group_id(group):
                return job
        raise FlowNotFound(ids[0] if name is None else name)

    get = blocking(aget)
    find = blocking(afind)
    tree = blocking(atree)
    cancel = blocking(acancel)
    retry = blocking(aretry)
    list = blocking(alist)


async def cancel_flow(store: Store, job: Job, reason: str) -> None:
    """Cancel the jobs of a group or graph; for those that are stored later see `client/groups/cancelled.py`."""
    await note_cancel(store, job, reason)
    if job.type == FLOW_TYPE:
        await cancel_graph(store, job.id, reason)
        return
    await end_noted_group(store, job.id, reason)
    await cancel_members(store.operator, job.id, ALIVE, reason)
    if group_payload(job).open:
        await close_group(store, job.id)
    await wake_always(store.operator, job.id)


def _flow(job: Job) -> Flow:
    """The record of a flow, from the group's own job."""
    payload = group_payload(job)
    known = int(job.progress.done) if job.progress is not None else 0
    size = _known_size(job, payload) or known
    return Flow(
        id=job.id,
        name=payload.name or None,
        status=job.status,
        reason=job.reason,
        size=size,
        completed=size if job.status is Status.COMPLETED and payload.need is None else known - _known_lost(job),
        need=payload.need,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


def _known_lost(job: Job) -> int:
    """How many counted members did not complete; with `need`, the group's progress has it."""
    return 0 if job.progress is None else noted_loss(job.progress.note) or 0


def _known_size(job: Job, payload: GroupPayload) -> int:
    """How many members the producer gave; in a completed group also how many members added."""
    if job.status is Status.COMPLETED and isinstance(job.result, dict):
        return int(job.result.get(SIZE, payload.size)) + int(job.result.get(ADDED, 0))
    if job.status is Status.COMPLETED and isinstance(job.result, list) and payload.need is None:
        return len(job.result)  # all have completed, as for a callback that takes a list
    return payload.size


async def _described(store: Store, job: Job) -> Flow:
    operator, payload = store.operator, group_payload(job)
    flow = _flow(job)
    if job.status is not Status.COMPLETED or payload.need is not None:
        flow = await _counted(operator, flow, payload)
    if payload.open:
        opening = await read_opening(store, job.id)
        flow = msgspec.structs.replace(flow, sealed=opening is None or opening.size is not None)
    callbacks = await operator.get([callback_id(job.id, role) for role in Role])
    named = zip(Role, callbacks, strict=True)
    found = [
        FlowCallback(role.name.lower(), each.id, each.type, each.status) for role, each in named if each is not None
    ]
    waits_for = await first_live(operator, job.id) if flow.live else None
    return msgspec.structs.replace(flow, callbacks=tuple(found), waits_for=waits_for)


async def _counted(operator: OperatorStore, flow: Flow, payload: GroupPayload) -> Flow:
    """The flow with exact counts; members that the group knows as completed are not read again."""
    known = flow.completed if payload.need is None else 0
    after = before_member(flow.id, known)
    completed, dead, cancelled = [
        await count_added(operator, flow.id, (status,), after)
        for status in (Status.COMPLETED, Status.DEAD, Status.CANCELLED)
    ]
    live = await count_added(operator, flow.id, ALIVE, after) if payload.open else 0
    size = max(payload.size, known + completed + dead + cancelled + live)
    return msgspec.structs.replace(flow, size=size, completed=known + completed, dead=dead, cancelled=cancelled)
