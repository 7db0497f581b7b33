"""Verbs without an event loop: a coroutine that never suspends needs none."""

from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def drive(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends, in the caller's own thread."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    work.close()
    raise RuntimeError(f"{work!r} suspended where there is no event loop to wake it")
