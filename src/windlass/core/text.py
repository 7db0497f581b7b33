"""Untrusted text, made safe to store, print and log."""


def printable(text: str) -> str:
    """The text with control characters escaped, so that no line of a log or terminal can be forged."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of the text; if it is cut, its length is named."""
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
