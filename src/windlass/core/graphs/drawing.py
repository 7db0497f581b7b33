"""A graph as boxes: similar nodes share a box, and each box has a level below those that it waits for. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windlass.core.graphs.tree import FlowEdge, FlowNode
from windlass.core.ids import JobId

FOLDED_FROM = 6
"""From this number on, nodes of one type that wait for the same nodes are one box."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A node, or several similar nodes."""

    name: str
    type: str
    count: int
    ends: dict[str, int]
    """The number of nodes by status; `skipped` counts as one."""
    id: JobId | None
    """The id of a single node."""
    level: int
    after: tuple[tuple[int, str], ...]
    """Indexes of other boxes, and how these must end."""

    @property
    def status(self) -> str:
        """The status of a single node; of several, the most important one."""
        return next(each for each in SEVERITY if self.ends.get(each))


SEVERITY = ("dead", "failed", "running", "pending", "scheduled", "blocked", "cancelled", "completed", "skipped")


def end_of(node: FlowNode) -> str:
    """The status of the node, or `skipped`."""
    return "skipped" if node.skipped else str(node.status)


def boxes(nodes: Sequence[FlowNode], most: int) -> tuple[list[Box], int]:
    """At most this number of boxes, and how many nodes are in no box; nodes come after those that they wait for."""
    classes = _classes(nodes)
    sizes = Counter(classes.values())
    index_of: dict[str, int] = {}
    """The index of the box, by the name of a node."""
    members: list[list[FlowNode]] = []
    of_class: dict[int, int] = {}
    left_out = 0
    for node in nodes:
        class_ = classes[node.name]
        at = of_class.get(class_, len(members)) if sizes[class_] >= FOLDED_FROM else len(members)
        if at >= most:
            left_out += 1
            continue
        if at == len(members):
            members.append([])
            of_class[class_] = at
        members[at].append(node)
        index_of[node.name] = at
    found: list[Box] = []
    for group in members:
        after = tuple(sorted({(index_of[edge.node], edge.when) for edge in _edges(group) if edge.node in index_of}))
        level = 1 + max((found[at].level for at, _ in after if at < len(found)), default=-1)
        found.append(_box(group, level, after))
    return found, left_out


def _classes(nodes: Sequence[FlowNode]) -> dict[str, int]:
    """The class of each node: nodes of one class have the same type, and wait for nodes of the same classes."""
    known: dict[object, int] = {}
    classes: dict[str, int] = {}
    for node in nodes:
        waits = frozenset((classes.get(edge.node, -1), edge.when) for edge in node.after)
        classes[node.name] = known.setdefault((node.type, waits), len(known))
    return classes


def _edges(group: Iterable[FlowNode]) -> Iterable[FlowEdge]:
    return (edge for node in group for edge in node.after)


def _box(group: Sequence[FlowNode], level: int, after: tuple[tuple[int, str], ...]) -> Box:
    first = group[0]
    return Box(
        name=first.name if len(group) == 1 else first.type,
        type=first.type,
        count=len(group),
        ends=dict(Counter(map(end_of, group))),
        id=first.id if len(group) == 1 else None,
        level=level,
        after=after,
    )
