"""Writes the diagram of docs/lifecycle.md from the table of legal moves, so that it cannot lack one.

python tools/lifecycle.py           write it
python tools/lifecycle.py --check   exit 1 if the page differs from what would be written
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from windlass.core.status import INITIAL, MOVES

PAGE = Path(__file__).parent.parent / "docs" / "lifecycle.md"
DIAGRAM = re.compile(r"(<!-- moves: [^\n]*\n```mermaid\n).*?(```\n)", re.DOTALL)


def diagram() -> Iterator[str]:
    """Every legal move, with what makes it."""
    yield "stateDiagram-v2"
    yield from (f"    [*] --> {after}: {how}" for after, how in INITIAL.items())
    for before, moves in MOVES.items():
        yield from (f"    {before} --> {after}: {how}" for after, how in moves.items())


def main() -> int:
    """Write or compare the page; the exit code."""
    before = PAGE.read_text(encoding="utf-8")
    text, found = DIAGRAM.subn(lambda match: match[1] + "\n".join(diagram()) + "\n" + match[2], before)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not found or text != before:
        print("docs/lifecycle.md is not up to date: say `make docs`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
