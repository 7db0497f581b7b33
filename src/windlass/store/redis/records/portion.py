"""How much text goes with one call: what scripts copy and encode keeps the server from others, too."""

from collections.abc import Callable, Sequence
from typing import TypeVar

MAX_TEXT = 100_000
"""Some 8 ms of a script that passes results on; one that is longer goes alone."""
MAX_WRITTEN = 1_000_000
"""Some 10 ms of a script that writes records."""

Item = TypeVar("Item")


def first_portion(
    items: Sequence[Item], text_of: Callable[[Item], int], most: int, most_text: int = MAX_TEXT
) -> Sequence[Item]:
    """The first items, as many as one call takes: at most `most`, with at most `most_text` bytes."""
    some, text = items[:most], 0
    for place, item in enumerate(some):
        text += text_of(item)
        if text > most_text and place:
            return some[:place]
    return some
