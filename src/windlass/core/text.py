"""Text from strangers, made safe to store, print and log."""


def printable(text: str) -> str:
    """Control characters shown, not obeyed: no line of a log or terminal can be forged or recoloured."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; what is missing is said."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 24]}… ({len(text):,} characters)"


def shown(value: object) -> str:
    """A wrong value in an error message: bounded, and something even if it cannot be shown."""
    try:
        return f"{value!r:.100}"
    except Exception:
        # An integer of thousands of digits, or an object of a stranger's.
        return f"this {type(value).__name__}"
