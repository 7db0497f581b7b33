"""A JSON value as a tree: numbers are exact, long texts and lists are cut, and its total size is bounded."""

from collections.abc import Iterator
from typing import Any

import msgspec

from windlass.core.text import cut

MAX_CHILDREN = 100
MAX_NODES = 1_000
MAX_TEXT = 2_000
MAX_TEXTS = 60_000
"""Characters of all texts together."""
OPEN_DEPTH = 2
OPEN_CHILDREN = 20


class Node(msgspec.Struct):
    """One value: its name in its parent, its kind and text, and its children."""

    name: str
    kind: str
    text: str
    children: list["Node"] = []
    omitted: int = 0
    """Children that are not shown."""
    is_open: bool = False


class _Budget:
    def __init__(self) -> None:
        self.nodes = MAX_NODES
        self.characters = MAX_TEXTS


def tree_of(value: Any) -> Node:
    """The tree of a value."""
    return _node("", value, 0, _Budget())


def _node(name: str, value: Any, depth: int, budget: _Budget) -> Node:
    budget.nodes -= 1
    if not isinstance(value, dict | list | tuple):
        kind, text = _leaf(value)
        text = cut(text, max(40, min(MAX_TEXT, budget.characters)))
        budget.characters -= len(text)
        return Node(name, kind, text)
    kind = "object" if isinstance(value, dict) else "list"
    node = Node(cut(name, 200), kind, _size(value), children=[])
    for key, child in _entries(value):
        if len(node.children) >= MAX_CHILDREN or budget.nodes <= 0:
            break
        node.children.append(_node(key, child, depth + 1, budget))
    node.omitted = len(value) - len(node.children)
    node.is_open = depth < OPEN_DEPTH and len(value) <= OPEN_CHILDREN
    return node


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(key), child) for key, child in value.items())
    else:
        yield from ((str(i), child) for i, child in enumerate(value))


def _leaf(value: Any) -> tuple[str, str]:
    if value is None:
        return "null", "null"
    if isinstance(value, bool):
        return "bool", "true" if value else "false"
    if isinstance(value, int):
        return "number", str(value)
    if isinstance(value, float):
        return "number", repr(value)
    return "text", str(value)


def _size(value: Any) -> str:
    count = len(value)
    if isinstance(value, dict):
        return f"{count:,} {'field' if count == 1 else 'fields'}"
    return f"{count:,} {'element' if count == 1 else 'elements'}"
