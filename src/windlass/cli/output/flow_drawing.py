"""A graph as lines of text: each node below the last of those that it waits for."""

from collections.abc import Iterator, Sequence

from windlass.core.graphs.drawing import Box, boxes
from windlass.core.graphs.tree import FlowTree
from windlass.core.text import cut, printable

MAX_LINES = 200
MAX_NAME = 60
SIGNS = {
    "completed": "✔",
    "dead": "✘",
    "failed": "!",
    "running": "▶",
    "pending": "○",
    "scheduled": "◷",
    "blocked": "·",
    "cancelled": "⊘",
    "skipped": "-",
}


def draw_graph(tree: FlowTree) -> Iterator[str]:
    """The lines; nodes that are alike share one."""
    found, left_out = boxes(tree.nodes, MAX_LINES)
    below: dict[int | None, list[int]] = {}
    for index, box in enumerate(found):
        last = max((at for at, _ in box.after), key=lambda at: (found[at].level, at), default=None)
        below.setdefault(last, []).append(index)
    stack = [(index, "", "") for index in reversed(below.get(None, []))]
    while stack:
        index, lead, indent = stack.pop()
        yield lead + _line(found, found[index])
        children = below.get(index, [])
        for child in reversed(children):
            is_last = child == children[-1]
            stack.append((child, indent + ("└─ " if is_last else "├─ "), indent + ("   " if is_last else "│  ")))
    if left_out := left_out + tree.left_out:
        yield f"… and {left_out:,} more nodes"


def _line(found: Sequence[Box], box: Box) -> str:
    name = cut(printable(box.name), MAX_NAME)
    if box.count > 1:
        described = ", ".join(f"{count:,} {end}" for end, count in box.ends.items())
        return f"{SIGNS[box.status]} {name} × {box.count:,}: {described}{_conditions(found, box)}"
    return f"{SIGNS[box.status]} {name} {box.status}{_conditions(found, box)}"


def _conditions(found: Sequence[Box], box: Box) -> str:
    """Other nodes that it waits for, and conditions; one that must complete is the line above it."""
    others = [(cut(printable(found[at].name), MAX_NAME), when) for at, when in box.after]
    if len(others) == 1 and others[0][1] == "completed":
        return ""
    by_when: dict[str, list[str]] = {}
    for name, when in others:
        by_when.setdefault(when, []).append(name)
    described = [f"{', '.join(names[:5])}{'…' if len(names) > 5 else ''} {when}" for when, names in by_when.items()]
    return f"  (when {' and '.join(described)})" if described else ""
