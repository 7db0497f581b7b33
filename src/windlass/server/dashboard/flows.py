"""Flows: the list, and one flow as a graph."""

from collections.abc import Mapping

import msgspec

from windlass.core.graphs.drawing import end_of
from windlass.core.graphs.tree import FlowNode
from windlass.core.ids import JobId
from windlass.core.tokens import Scope
from windlass.server.api.flows import (
    MAX_SHOWN,
    FlowCancel,
    FlowDetail,
    FlowQuery,
    NodeQuery,
    cancel_flow,
    get_flow,
    list_flows,
    retry_flow,
)
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.figures.graph import graph_picture
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link, paged, unknown_verb

ENDS = ("completed", "live", "dead", "cancelled", "skipped")
MAX_NAMES = 5
QUESTIONS = {
    "cancel": ("Cancel this flow?", "Cancel the flow", "Waiting jobs are cancelled, running ones are asked to stop."),
    "retry": (
        "Run what failed again?",
        "Retry the flow",
        "Dead and cancelled jobs run again, completed ones do not.",
    ),
}


class Row(msgspec.Struct, frozen=True):
    """A node in the table."""

    node: FlowNode
    end: str
    reason: str
    after: tuple[str, ...]
    more: int
    """How many more nodes it waits for."""


async def show_flows(view: View) -> Reply:
    """All flows, newest first, then those with a name."""
    cursor = view.asked("cursor") or None
    found = (await view.ask(list_flows, query=FlowQuery(cursor=cursor))).body
    older = link("/flows", cursor=found.next_cursor) if found.next_cursor else None
    return Shown("flows.html", "Flows", {"flows": found.flows, "first": "/flows" if cursor else None, "older": older})


async def show_flow(view: View) -> Reply:
    """One flow: its progress, its graph, and its nodes."""
    flow: FlowDetail = (await view.ask(get_flow, id=view.path["id"], query=NodeQuery(MAX_SHOWN))).body
    path, ends = f"/flows/{flow.id}", sorted({end_of(node) for node in flow.nodes})
    chosen = view.asked("status") if view.asked("status") in ends else ""
    wanted = [node for node in flow.nodes if chosen in ("", end_of(node))]
    names = {node.id: node.name for node in flow.nodes}
    rows, pages = paged(view, path, [make_row(node, names) for node in wanted])
    if chosen:
        pages = {name: to and f"{to}{'&' if '?' in to else '?'}status={chosen}" for name, to in pages.items()}
    verbs = [
        verb for verb in QUESTIONS if view.allows("operate") and (verb == "retry") == (flow.finished_at is not None)
    ]
    context = {
        "flow": flow,
        "counts": [(name, getattr(flow, name)) for name in ENDS],
        "picture": graph_picture(flow.nodes, flow.left_out),
        "rows": rows,
        "chosen": chosen,
        "total": len(wanted),
        "ends": ends,
        "verbs": verbs,
        "running": flow.finished_at is None,
        **pages,
    }
    return Shown("flow.html", f"Flow {flow.name or flow.id}", context)


def make_row(node: FlowNode, names: Mapping[JobId, str]) -> Row:
    """The row of a node; its reason has the names of other nodes instead of their ids."""
    after = [f"{edge.node} {edge.when}" for edge in node.after]
    reason = " ".join(names.get(word, word) for word in (node.reason or "").split(" "))
    return Row(node, end_of(node), reason, tuple(after[:MAX_NAMES]), max(0, len(after) - MAX_NAMES))


async def act_on_flow(view: View) -> Reply:
    """Cancel or retry a flow."""
    verb, id_ = view.path["verb"], view.path["id"]
    if verb not in QUESTIONS:
        raise unknown_verb(verb)
    question, button, detail = QUESTIONS[verb]
    back = f"/flows/{id_}"
    change = Change(question=question, button=button, back=back, detail=detail, danger=verb == "cancel")
    if (asked := confirm(view, f"{back}/{verb}", change)) is not None:
        return asked
    if verb == "cancel":
        await view.ask(cancel_flow, id=id_, body=FlowCancel())
    else:
        await view.ask(retry_flow, id=id_)
    return Moved(back)


PAGES = (
    Page(path="/flows", handler=show_flows),
    Page(path="/flows/{id}", handler=show_flow),
    Page(path="/flows/{id}/{verb}", method="POST", handler=act_on_flow, scope=Scope.OPERATE),
)
