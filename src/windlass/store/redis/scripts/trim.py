"""Trims the text of scripts, because every call of a script creates all of its functions and tables anew.

What the script does not need is left out. What it declares as `lazy` is created at its first use. Constants are
written where they are used: each upvalue of a function costs time.

Only definitions that begin at the start of a line are considered: `local function f(`, `local t = {`, and constants,
`local PENDING, RUNNING = 112, 114`. Anything else in a part stays as it is.
"""

import re
from collections.abc import Collection, Sequence

import msgspec

_DEFINED = re.compile(r"local function (\w+)\(|local (\w+) = \{")
_WORD = re.compile(r"\w+")
_LITERAL = r"(?:'[^'\n]*'|-?\d+)"
_CONSTANTS = re.compile(rf"^local ([A-Z][A-Z0-9_, ]*?) =\s+({_LITERAL}(?:,\s*{_LITERAL})*)(?: *--.*)?$", re.MULTILINE)
_STRING_OR_COMMENT = re.compile(r"('(?:[^'\\\n]|\\.)*'|--[^\n]*)")
_CAPITALS = re.compile(r"(?<![\w.])[A-Z][A-Z0-9_]*\b(?!\s*=[^=])")


class Piece(msgspec.Struct):
    """A statement at the start of a line, with what belongs to it."""

    text: str
    words: set[str]
    name: str | None
    """The function or table that it defines, if any."""


def trimmed(parts: Sequence[str], body: str, lazy: Collection[str] = ()) -> str:
    """The text of a script and its parts, without what is not used; `lazy` functions are created at first use."""
    pieces = [piece for part in parts for piece in _pieces(part)]
    whole = set(_WORD.findall(_code(body))).union(*(piece.words for piece in pieces if piece.name is None))
    always = _needed(pieces, whole, set(lazy))
    entered = {piece.name for piece in pieces if piece.name in lazy and piece.name in _words(always, whole)}
    entries = [piece for piece in pieces if piece.name in entered]
    later = _needed([piece for piece in pieces if piece not in always], _words(entries, set()) | entered, set())
    stub = "local function {0}(...) return make_lazy().{0}(...) end"
    stubs = [
        stub.format(piece.name) if piece in entries else piece.text
        for piece in pieces
        if piece in (*always, *entries)
    ]
    return inlined("\n".join([*_block(later, entries, stubs), body]))


def inlined(text: str) -> str:
    """The text with each constant written where it is used."""
    known: dict[str, str] = {}
    for names, values in _CONSTANTS.findall(text):
        for name, value in zip(names.replace(" ", "").split(","), re.findall(_LITERAL, values), strict=True):
            if known.setdefault(name, value) != value:
                raise ValueError(f"the constant {name} has two values in one script")
    pieces = _STRING_OR_COMMENT.split(_CONSTANTS.sub("", text))
    # Every second piece is a string or a comment.
    pieces[::2] = [_CAPITALS.sub(lambda found: known.get(found[0], found[0]), piece) for piece in pieces[::2]]
    return "".join(pieces)


def _needed(pieces: Sequence[Piece], words: set[str], but: set[str]) -> list[Piece]:
    """Pieces without a name, named pieces that are used, and what these need, which comes before them."""
    wanted, kept = set(words), list[Piece]()
    for piece in reversed(pieces):
        if piece.name is None or (piece.name in wanted and piece.name not in but):
            kept.append(piece)
            wanted |= piece.words
    return kept[::-1]


def _words(pieces: Sequence[Piece], more: set[str]) -> set[str]:
    return more.union(*(piece.words for piece in pieces))


def _block(later: Sequence[Piece], entries: Sequence[Piece], stubs: Sequence[str]) -> list[str]:
    """The text of all pieces; lazy ones are in a function that creates them at their first use."""
    if not entries:
        return list(stubs)
    table = ", ".join(f"{piece.name} = {piece.name}" for piece in entries)
    made = "\n".join(piece.text for piece in later)
    make = f"if lazy then return lazy end\n{made}\nlazy = {{{table}}}\nreturn lazy"
    return ["local lazy, make_lazy", *stubs, f"make_lazy = function()\n{make}\nend"]


def _pieces(text: str) -> list[Piece]:
    """Lines that are indented, empty or closing belong to the one before."""
    pieces: list[str] = []
    for line in text.splitlines():
        if pieces and (line.startswith((" ", "end", "}")) or not line):
            pieces[-1] += f"\n{line}"
        elif not line.startswith("--"):
            pieces.append(line)
    return [Piece(piece, set(_WORD.findall(_code(piece))), _name(piece)) for piece in pieces]


def _name(piece: str) -> str | None:
    found = _DEFINED.match(piece)
    return found and (found[1] or found[2])


def _code(text: str) -> str:
    return "\n".join(line.partition("--")[0] for line in text.splitlines())
