"""The order of the adds to an open group."""

import asyncio
from weakref import WeakKeyDictionary

from windlass.native import lock
from windlass.store.drive import running_loop

LOCK_SECONDS = 0.002
"""Between two tries of an event loop to get a lock that another thread holds."""


class AddLock:
    """Serializes adds, on an event loop in the order of the calls, which is also the order of the members."""

    def __init__(self) -> None:
        self._of_threads = lock()
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """An asyncio lock is for one loop; threads may have several."""

    async def __aenter__(self) -> None:
        if (loop := running_loop()) is None:
            self._of_threads.acquire()
            return
        of_loop = self._of_loops.setdefault(loop, asyncio.Lock())
        await of_loop.acquire()
        try:
            while not self._of_threads.acquire(blocking=False):  # noqa: ASYNC110
                await asyncio.sleep(LOCK_SECONDS)
        except BaseException:
            of_loop.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._of_threads.release()
        if (loop := running_loop()) is not None:
            self._of_loops[loop].release()
