"""PREVIOUS: what stands, in a link of a chain, for the result of the link before it."""

from typing import Any


class _Previous:
    """Stands for the result of the link before, in `chain(...)`. One of a kind; no payload can hold it."""

    def __repr__(self) -> str:
        return "PREVIOUS"

    def __reduce__(self) -> str:
        return "PREVIOUS"


PREVIOUS: Any = _Previous()
"""In `chain(...)`: the result of the link before, as an argument. To a type checker it is whatever is wanted."""
