"""How much text goes with one call: what scripts copy and encode keeps the server from others, too."""

from collections.abc import Callable, Sequence
from typing import TypeVar

MOST_TEXT = 100_000
"""Some 8 ms of a script that passes results on; one that is longer goes alone."""

Item = TypeVar("Item")


def first_portion(items: Sequence[Item], text_of: Callable[[Item], int], most: int) -> Sequence[Item]:
    """The first of them, as many as one call takes: up to so many, and not too much text in all."""
    some, text = items[:most], 0
    for place, item in enumerate(some):
        text += text_of(item)
        if text > MOST_TEXT and place:
            return some[:place]
    return some
