"""The event loops that programs and workers use: what holds on one must hold on the other."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
Factory = Callable[[], asyncio.AbstractEventLoop]

LOOPS: dict[str, Factory] = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.Loop}


def run_on(loop: str, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a new loop of this kind."""
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(main)
