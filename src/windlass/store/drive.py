"""Verbs without an event loop: a coroutine that never suspends needs none."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of this thread. Called outside any `except`, so that later errors have no unrelated cause."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def drive(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends, in the caller's thread."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    work.close()
    raise RuntimeError(f"{work!r} suspended where there is no event loop to wake it")
