"""Untrusted text, made safe to store, print and log."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_NAMED = 10
"""Names in an error message."""


def printable(text: str) -> str:
    """Control characters are escaped, so that no line of a log or terminal can be forged."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; says how many there were."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 24]}… ({len(text):,} characters)"


def shown(value: object) -> str:
    """A wrong value in an error message: bounded, and never raising."""
    try:
        return f"{value!r:.100}"
    except Exception:
        # An integer of thousands of digits, or a user's object.
        return f"this {type(value).__name__}"


def suggest(name: str, known: Iterable[str]) -> str:
    """What to add to an error about an unknown name: the closest that exists, and what else there is."""
    names = sorted(set(known))
    close = get_close_matches(name, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{guess}; there are {', '.join(names[:MAX_NAMED])}{more}" if names else ""
