"""The event loops that Windlass makes."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from windlass.errors import ConfigError
from windlass.native import is_gevent, require_threads

T = TypeVar("T")
portal_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""Loops of portals, and the id of the process that runs each; a portal closes what is left on its loop."""
ending_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Loops of portals that end: all their calls are cancelled, and no other begins."""
held_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Loops of portals that were stopped where they were, because the process ends: they run no callback any more."""
STANDARD = (0, 1, 2)
"""The descriptors of standard input, output and error."""


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed: half the cost."""
    try:
        import uvloop
    except ImportError:
        if is_gevent():
            raise ConfigError(
                "under gevent Windlass needs uvloop (pip install uvloop): gevent patches the calls that "
                "asyncio's own event loop waits with"
            ) from None
        return asyncio.new_event_loop
    _open_standard_descriptors()
    return uvloop.Loop


def is_ending(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the portal of this loop was closed."""
    return loop in ending_loops


def _open_standard_descriptors() -> None:
    """Open closed standard descriptors on /dev/null: some programs start others with `<&-`.

    The next file or socket would get such a number, and libuv aborts the process when it closes one below 3.
    """
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number
            os.set_inheritable(opened, True)


def run(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run() on such a loop, for processes that run for months.

    asyncio's own loop reads every answer into 256 KiB that it then shrinks, which fragments the heap: a supervisor on
    PostgreSQL grew by 125 MB a day. uvloop reads into one buffer.
    """
    try:
        require_threads()
    except ConfigError:
        main.close()
        raise
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)
