"""What a script does not use of its parts is left out: every call makes every function and table of its text anew.

Only definitions that begin at the start of a line are looked at, and only functions and tables: `local function f(`
and `local t = {`. Whatever else a part says stays.
"""

import re
from collections.abc import Sequence

_DEFINED = re.compile(r"local function (\w+)\(|local (\w+) = \{")
_WORD = re.compile(r"\w+")


def trimmed(parts: Sequence[str], body: str) -> str:
    """The text of all, without the definitions of parts that nothing in it needs."""
    pieces = [piece for part in parts for piece in _pieces(part)]
    used = [set(_WORD.findall(_code(piece))) for piece in pieces]
    wanted = set(_WORD.findall(_code(body)))
    kept = [_name(piece) is None for piece in pieces]
    for i, stays in enumerate(kept):
        if stays:
            wanted |= used[i]
    # Whoever is needed needs others, all of which come before it.
    for i in reversed(range(len(pieces))):
        if not kept[i] and _name(pieces[i]) in wanted:
            kept[i] = True
            wanted |= used[i]
    return "\n".join([*(piece for piece, stays in zip(pieces, kept, strict=True) if stays), body])


def _pieces(text: str) -> list[str]:
    """A statement at the start of a line, with what belongs to it: lines that are indented, and its closing one."""
    pieces: list[str] = []
    for line in text.splitlines():
        if pieces and (line.startswith((" ", "end", "}")) or not line):
            pieces[-1] += f"\n{line}"
        else:
            pieces.append(line)
    return pieces


def _name(piece: str) -> str | None:
    found = _DEFINED.match(piece)
    return found and (found[1] or found[2])


def _code(text: str) -> str:
    return "\n".join(line.partition("--")[0] for line in text.splitlines())
