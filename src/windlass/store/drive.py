"""Verbs without an event loop: a coroutine that never suspends needs none."""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The running loop of this thread, or None; cheaper than catching the error of `get_running_loop`."""
    return asyncio._get_running_loop()


def drive(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends, in the caller's thread."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    work.close()
    raise RuntimeError(f"{work!r} suspended where there is no event loop to wake it")


@coroutine
def to_loop() -> Generator[None, None, None]:
    """Continue on an event loop: a coroutine that began without one suspends here, before it has any effect."""
    if running_loop() is None:
        yield
