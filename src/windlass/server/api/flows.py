"""Flows: groups and graphs of jobs, read, cancelled and retried."""

from datetime import datetime
from typing import Any

import msgspec

from windlass.client.verbs.flows import FlowNotFound
from windlass.core.graphs.tree import FlowNode, FlowTree
from windlass.core.groups.flow import Flow, FlowCallback
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption
from windlass.server.decode import make_cursor, read_cursor
from windlass.server.operation import Answer, Call, Operation, OutsideLimits, reads

MAX_SHOWN = 10_000
"""Nodes in one answer."""


class FlowRecord(msgspec.Struct, kw_only=True):
    """A flow. For a token that is limited to queues or types, numbers are of nodes that it covers; null in lists."""

    id: JobId
    kind: str
    """group or graph."""
    name: str | None
    status: Status
    reason: str | None
    size: int | None
    completed: int | None
    dead: int | None
    cancelled: int | None
    skipped: int | None
    live: int | None
    need: int | str | None = None
    """How many members of a group must complete; null: all."""
    sealed: bool = True
    """False: a group to which more members may come."""
    waits_for: JobId | None
    """The first node that is running, or waiting."""
    callbacks: tuple[FlowCallback, ...] = ()
    created_at: datetime
    finished_at: datetime | None


class FlowDetail(FlowRecord, kw_only=True):
    """A flow with its nodes; each comes after those that it waits for."""

    nodes: tuple[FlowNode, ...]
    left_out: int
    """Nodes that are not shown: beyond the limit, or of other queues and types than the token may see."""


class FlowList(msgspec.Struct):
    """One page; only `next_cursor: null` means the end. `completed` is the last count of each flow."""

    flows: list[FlowRecord]
    next_cursor: str | None


class FlowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page of a list."""

    limit: int = 50
    cursor: str | None = None


class NodeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many nodes to show."""

    limit: int = 1000


class FlowCancel(msgspec.Struct, forbid_unknown_fields=True):
    """The reason to store with the cancelled jobs."""

    reason: str = "cancelled by an operator"


async def list_flows(call: Call) -> Answer:
    """Flows, newest first; of more than 1,000 with a name some come last, in no order."""
    rights = call.caller.rights
    bound = {"token": call.caller.id if rights.is_limited else ""}
    queues = tuple(sorted(rights.queues))
    page = await call.app.flows.alist(
        limit=call.query.limit, cursor=read_cursor(call.query.cursor, bound), queues=queues
    )
    flows = [] if rights.types else [_record(flow, counted=not rights.is_limited) for flow in page.items]
    return Answer(FlowList(flows, make_cursor(page.next_cursor, bound)))


async def get_flow(call: Call) -> Answer:
    """A flow: how many of its jobs ended how, what holds it up, and its nodes with what each waits for."""
    if not 1 <= call.query.limit <= MAX_SHOWN:
        raise InvalidOption("limit", f"must be 1 to {MAX_SHOWN:,}, not {call.query.limit:,}", limit=MAX_SHOWN)
    flow, tree = await _seen(call, call.query.limit)
    nodes = tree.nodes[: call.query.limit]
    record = msgspec.structs.asdict(_record(flow, counted=True))
    left_out = tree.left_out + len(tree.nodes) - len(nodes)
    return Answer(FlowDetail(**record, nodes=nodes, left_out=left_out))


async def cancel_flow(call: Call) -> Answer:
    """Cancel waiting jobs of a flow, and ask running ones to stop; nodes that run after any end still run."""
    flow = await _whole(call)
    return Answer(_record(await call.app.flows.acancel(flow.id, call.body.reason), counted=True))


async def retry_flow(call: Call) -> Answer:
    """Run the dead and cancelled jobs of a flow again."""
    flow = await _whole(call)
    return Answer(_record(await call.app.flows.aretry(flow.id), counted=True))


async def _whole(call: Call) -> Flow:
    """A flow of whose jobs the caller covers all; groups and chains within it have jobs that are no nodes."""
    if not call.caller.rights.is_limited:
        return await call.app.flows.aget(call.path["id"])
    flow, tree = await _seen(call, MAX_SHOWN)
    if tree.left_out or any(node.type in (GROUP_TYPE, MEMBER_TYPE) for node in tree.nodes):
        raise OutsideLimits("this token is limited, and the flow has jobs that are not among what it may use")
    return flow


async def _seen(call: Call, limit: int) -> tuple[Flow, FlowTree]:
    """The flow of the path, with the nodes that the caller covers; FlowNotFound if there are none.

    Of a group, `limit` members are read; for a limited caller MAX_SHOWN.
    """
    id_, rights = call.path["id"], call.caller.rights
    tree = await call.app.flows.atree(id_, limit=MAX_SHOWN if rights.is_limited else limit)
    flow = await call.app.flows.aget(tree.id)
    if not rights.is_limited:
        return flow, tree
    nodes = tuple(node for node in tree.nodes if rights.covers(node.queue, node.type))
    if not nodes:
        raise FlowNotFound(id_)
    names = {node.name for node in nodes}
    nodes = tuple(
        msgspec.structs.replace(node, after=tuple(edge for edge in node.after if edge.node in names))
        for node in nodes
    )
    hidden = tree.left_out + len(tree.nodes) - len(nodes)
    return _counted(flow, nodes), msgspec.structs.replace(tree, nodes=nodes, left_out=hidden)


def _counted(flow: Flow, nodes: tuple[FlowNode, ...]) -> Flow:
    """The flow with the numbers of these nodes alone."""
    seen = {node.id for node in nodes}
    ended = [("skipped" if node.skipped else str(node.status)) for node in nodes]
    return msgspec.structs.replace(
        flow,
        reason=None,
        size=len(nodes),
        **{name: ended.count(name) for name in ("completed", "dead", "cancelled", "skipped")},
        waits_for=flow.waits_for if flow.waits_for in seen else None,
        callbacks=tuple(each for each in flow.callbacks if each.id in seen),
    )


def _record(flow: Flow, *, counted: bool) -> FlowRecord:
    fields: dict[str, Any] = {**msgspec.structs.asdict(flow), "live": flow.live}
    if not counted:
        fields |= dict.fromkeys(("size", "completed", "dead", "cancelled", "skipped", "live", "reason", "waits_for"))
    return FlowRecord(**{name: fields[name] for name in FlowRecord.__struct_fields__})


OPERATIONS = (
    reads("/flows", list_flows, "List flows, newest first", FlowList, FlowQuery),
    reads("/flows/{id}", get_flow, "Read a flow and its nodes", FlowDetail, NodeQuery),
    Operation(
        method="POST",
        path="/flows/{id}/cancel",
        scope=Scope.OPERATE,
        handler=cancel_flow,
        summary="Cancel a flow",
        body=FlowCancel,
        optional_body=True,
        answers={200: FlowRecord},
    ),
    Operation(
        method="POST",
        path="/flows/{id}/retry",
        scope=Scope.OPERATE,
        handler=retry_flow,
        summary="Run the dead and cancelled jobs of a flow again",
        answers={200: FlowRecord},
    ),
)
