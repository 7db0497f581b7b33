"""The event loops that we make ourselves."""

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed: the same loop, half the cost."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.Loop
