"""Writes the picture and the table of docs/lifecycle.md from the table of legal moves, so that they cannot lack one.

python tools/lifecycle.py           write them
python tools/lifecycle.py --check   exit 1 if one differs from what would be written
"""

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from windlass.core.status import FINISHED, INITIAL, MOVES

DOCS = Path(__file__).parent.parent / "docs"
PAGE, PICTURE = DOCS / "lifecycle.md", DOCS / "pictures" / "lifecycle.svg"
TABLE = re.compile(r"(<!-- moves: [^\n]*\n).*?(<!-- end of moves -->\n)", re.DOTALL)

WIDTH, HEIGHT = 880, 480
BOX_WIDTH, BOX_HEIGHT = 112, 40
START = "enqueue"
PLACES = {
    START: (70, 240),
    "scheduled": (260, 70),
    "pending": (260, 240),
    "blocked": (260, 410),
    "failed": (520, 70),
    "running": (520, 240),
    "completed": (790, 130),
    "dead": (790, 240),
    "cancelled": (790, 410),
}
BENDS = {
    ("scheduled", "blocked"): 74.0,
    ("blocked", "scheduled"): -98.0,
    ("scheduled", "cancelled"): -40.0,
    ("failed", "cancelled"): -30.0,
    ("completed", "pending"): 70.0,
    ("dead", "pending"): 44.0,
    ("cancelled", "pending"): 10.0,
    ("completed", "blocked"): -34.0,
    ("dead", "blocked"): -8.0,
    ("cancelled", "blocked"): 36.0,
    ("failed", "blocked"): 20.0,
}
"""How far the middle of an arrow is beside the straight line, where it would meet a box or another arrow."""
STYLE = """
text { font: 15px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; fill: #1f2933 }
rect { fill: #f5f7fa; stroke: #52606d; stroke-width: 1.5 }
.finished { fill: #dde7ee }
path { fill: none; stroke-width: 1.6; marker-end: url(#head) }
.on { stroke: #243b53 }
.again { stroke: #b44d12; stroke-dasharray: 6 4 }
.stop { stroke: #8896a4; stroke-dasharray: 2 4 }
.legend { font-size: 13px; text-anchor: start }
"""


def moves() -> Iterator[tuple[str, str, str]]:
    """Every legal move, with what makes it."""
    yield from ((START, str(after), how) for after, how in INITIAL.items())
    for before, found in MOVES.items():
        yield from ((str(before), str(after), how) for after, how in found.items())


def table() -> str:
    """The moves for users, each with what makes it."""
    rows = [f"| {_name(before)} | `{after}` | {how} |" for before, after, how in moves()]
    return "\n".join(["| from | to | by |", "|---|---|---|", *rows]) + "\n"


def picture() -> str:
    """The moves as arrows between boxes."""
    arrows = [_arrow(before, after) for before, after, _ in moves()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            "<title>The statuses of a job and its legal moves; the table below has what makes each</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" style="fill: context-stroke; stroke: none; '
            'marker-end: none"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" style="fill: #ffffff; stroke: none"/>',
            *arrows,
            *(_box(name) for name in PLACES),
            *_legend(),
            "</svg>\n",
        ]
    )


def _name(status: str) -> str:
    return "(new)" if status == START else f"`{status}`"


def _box(name: str) -> str:
    x, y = PLACES[name]
    kind = "finished" if name in {str(status) for status in FINISHED} else "live"
    shape = f'<rect class="{kind}" x="{x - BOX_WIDTH / 2:g}" y="{y - BOX_HEIGHT / 2:g}" '
    size = f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8"/>'
    return (shape + size if name != START else "") + f'<text x="{x}" y="{y}">{name}</text>'


def _arrow(before: str, after: str) -> str:
    """A curve from box to box; opposite arrows bend to opposite sides."""
    (x1, y1), (x2, y2) = PLACES[before], PLACES[after]
    length = math.hypot(x2 - x1, y2 - y1)
    bend = BENDS.get((before, after), 14.0)
    middle = (x1 + x2) / 2 - (y2 - y1) / length * bend, (y1 + y2) / 2 + (x2 - x1) / length * bend
    # A quadratic curve passes halfway between its control point and the straight line.
    control = 2 * middle[0] - (x1 + x2) / 2, 2 * middle[1] - (y1 + y2) / 2
    (ax, ay), (bx, by) = _edge(before, control), _edge(after, control)
    curve = f"M{ax:.0f} {ay:.0f}Q{control[0]:.0f} {control[1]:.0f} {bx:.0f} {by:.0f}"
    return f'<path class="{_kind(before, after)}" d="{curve}"/>'


def _edge(name: str, towards: tuple[float, float]) -> tuple[float, float]:
    """Where the line from a box to a point leaves the box."""
    x, y = PLACES[name]
    dx, dy = towards[0] - x, towards[1] - y
    scale = min((BOX_WIDTH / 2 + 3) / abs(dx or 1e-9), (BOX_HEIGHT / 2 + 3) / abs(dy or 1e-9))
    return x + dx * scale, y + dy * scale


def _kind(before: str, after: str) -> str:
    finished = {str(status) for status in FINISHED}
    if before in finished:
        return "again"
    return "stop" if after == "cancelled" else "on"


def _legend() -> Iterator[str]:
    for place, (kind, meaning) in enumerate(
        [("on", "by workers and time"), ("again", "retried by a user"), ("stop", "cancelled")]
    ):
        x = 330 + place * 190
        line = f'<path class="{kind}" d="M{x} 462 {x + 34} 462"/>'
        yield f'{line}<text class="legend" x="{x + 42}" y="462">{meaning}</text>'


def main() -> int:
    """Write or compare; the exit code."""
    before = PAGE.read_text(encoding="utf-8")
    text, found = TABLE.subn(lambda match: match[1] + table() + match[2], before)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        PICTURE.write_text(picture(), encoding="utf-8")
    elif not found or text != before or PICTURE.read_text(encoding="utf-8") != picture():
        print("docs/lifecycle.md or its picture is not up to date: run `make docs`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
