"""Closes what an app that was dropped without `close()` left open, in a thread of its own.

The garbage collector may call it at any moment, in a thread that holds any lock. So the call takes no lock, does not
wait, and starts the thread by a function that takes no lock either.
"""

import _thread
import asyncio
import concurrent.futures
import contextlib
import os
import threading
import warnings
from functools import partial
from typing import Any
from weakref import WeakSet, finalize

import msgspec

from windlass.client.runtime.loops import portal_loops
from windlass.client.runtime.result_waiter import ResultWaiter
from windlass.native import is_gevent, start_thread
from windlass.store.contract import Store
from windlass.store.open import redact

LOOP_SECONDS = 2.0
"""A blocked event loop closes its part when it runs again."""


class Opened(msgspec.Struct, frozen=True, eq=False):
    """A store, and the loops on which it was used. It does not refer to the app."""

    pid: int
    store: Store
    waiters: dict[asyncio.AbstractEventLoop, ResultWaiter]
    loops: "WeakSet[asyncio.AbstractEventLoop]"

    async def close(self) -> None:
        """Close all of it. Errors are dropped: no caller could handle them."""
        for waiter in [each for each in self.waiters.values() if not each.over]:
            await waiter.close()
        with contextlib.suppress(Exception):
            await self.store.close()


def release_with(owner: object, opened: Opened) -> "finalize[[Opened], Any]":
    """Close it when the owner is dropped; not at the end of the process, which closes everything itself."""
    closing = finalize(owner, _release, opened)
    closing.atexit = False
    return closing


def _release(opened: Opened) -> None:
    if opened.pid != os.getpid():
        return  # skip: a copy in a forked child
    with contextlib.suppress(RuntimeError):  # skip: the process is ending and cannot start a thread
        if is_gevent():
            start_thread(partial(_close, opened), "windlass-release")  # takes no lock
        else:
            _thread.start_new_thread(_start, (opened,))
    warnings.warn(
        f"an App on {redact(opened.store.address)} was dropped without close(): it is closed now",
        ResourceWarning,
        stacklevel=2,
    )


def _start(opened: Opened) -> None:
    # Use a thread that Python knows: one of `_thread` would leave entries in Python's list of threads.
    threading.Thread(target=_close, args=(opened,), name="windlass-release", daemon=True).start()


def _close(opened: Opened) -> None:
    """First on the event loops that have connections, then the rest."""
    waiting = []
    for loop in set(opened.loops) - set(portal_loops):
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        with contextlib.suppress(RuntimeError):  # it is closed
            loop.call_soon_threadsafe(_close_here, opened, done)
            waiting.append(done)
    concurrent.futures.wait(waiting, LOOP_SECONDS)
    asyncio.run(opened.close())


def _close_here(opened: Opened, done: "concurrent.futures.Future[None]") -> None:
    closing = asyncio.get_running_loop().create_task(opened.close())
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)
    closing.add_done_callback(lambda _: done.set_result(None))


_closing: set[asyncio.Task[None]] = set()
"""A loop alone would not keep them alive."""
