"""A graph as SVG, drawn on the server: boxes in rows, each below those that it waits for."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from windlass.core.graphs.drawing import Box, boxes
from windlass.core.graphs.tree import FlowNode
from windlass.core.text import printable

MAX_BOXES = 150
MAX_PER_ROW = 8
"""Wider levels are broken into several rows."""
WIDTH, HEIGHT, GAP, SPACE = 150, 44, 16, 40
BOW = 60
"""How far an edge that passes other levels bends to the side: a straight one would run through their boxes."""
MAX_LETTERS = 18


class Picture(msgspec.Struct, frozen=True):
    """The SVG, its size, and what it leaves out."""

    svg: Markup
    width: int
    height: int
    folded: int
    """Boxes that stand for several nodes."""
    left_out: int
    words: str
    """The text alternative."""


def graph_picture(nodes: Sequence[FlowNode], hidden: int = 0) -> Picture:
    """The picture of these nodes; those that are alike share a box."""
    found, left_out = boxes(nodes, MAX_BOXES)
    positions, width, height = _positions(found)
    lines = [
        _edge(positions[at], positions[n], when)
        if box.level == found[at].level + 1
        else _bow(positions[at], positions[n], when)
        for n, box in enumerate(found)
        for at, when in box.after
    ]
    if any(box.level > found[at].level + 1 for box in found for at, _ in box.after):
        width += BOW
    drawn = [_box(box, *positions[n]) for n, box in enumerate(found)]
    folded = sum(box.count > 1 for box in found)
    words = f"A graph of {len(nodes):,} nodes; the table below has the same."
    return Picture(Markup("").join([*lines, *drawn]), width, height, folded, left_out + hidden, words)


def _positions(found: Sequence[Box]) -> tuple[list[tuple[int, int]], int, int]:
    """The corner of each box, and the size of all."""
    levels: dict[int, list[int]] = defaultdict(list)
    for n, box in enumerate(found):
        levels[box.level].append(n)
    widest = min(MAX_PER_ROW, max((len(level) for level in levels.values()), default=1))
    width, y = widest * (WIDTH + GAP) + GAP, GAP
    positions = [(0, 0)] * len(found)
    for level in sorted(levels):
        rows = [levels[level][at : at + MAX_PER_ROW] for at in range(0, len(levels[level]), MAX_PER_ROW)]
        for row in rows:
            left = (width - len(row) * (WIDTH + GAP) + GAP) // 2
            for at, n in enumerate(row):
                positions[n] = left + at * (WIDTH + GAP), y
            y += HEIGHT + GAP
        y += SPACE - GAP
    return positions, width, y - SPACE + 2 * GAP


def _edge(above: tuple[int, int], below: tuple[int, int], when: str) -> Markup:
    x, y = above[0] + WIDTH // 2, above[1] + HEIGHT
    to_x, to_y = below[0] + WIDTH // 2, below[1]
    middle = (y + to_y) // 2
    path = f"M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {to_y}"
    return Markup('<path class="edge {}" d="{}"/>').format(when, path)


def _bow(above: tuple[int, int], below: tuple[int, int], when: str) -> Markup:
    """An edge from the right side of a box to that of another, past the boxes between them."""
    x, y = above[0] + WIDTH, above[1] + HEIGHT // 2
    to_x, to_y = below[0] + WIDTH, below[1] + HEIGHT // 2
    side = max(x, to_x) + BOW
    return Markup('<path class="edge {}" d="{}"/>').format(when, f"M{x} {y}C{side} {y} {side} {to_y} {to_x} {to_y}")


def _box(box: Box, x: int, y: int) -> Markup:
    name = printable(box.name)
    described = box.status if box.count == 1 else f"× {box.count:,}: " + _summary(box)
    inside = Markup(
        '<title>{}: {}</title><rect x="{}" y="{}" width="{}" height="{}" rx="6"/>'
        '<text x="{}" y="{}">{}</text><text class="sub" x="{}" y="{}">{}</text>'
    ).format(
        *(name, described, x, y, WIDTH, HEIGHT),
        *(x + 10, y + 19, _short(name, MAX_LETTERS)),
        *(x + 10, y + 35, _short(described, MAX_LETTERS + 4)),
    )
    if box.id is None:
        return Markup('<g class="node {} many">{}</g>').format(box.status, inside)
    return Markup('<a class="node {}" href="/jobs/{}">{}</a>').format(box.status, box.id, inside)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _summary(box: Box) -> str:
    return ", ".join(f"{count:,} {end}" for end, count in sorted(box.ends.items(), key=lambda each: -each[1]))
