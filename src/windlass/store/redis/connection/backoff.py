"""How long is waited for servers that change places: a failover, a slot that moves."""

import asyncio
import time

MAX_SECONDS = 5.0
FIRST_PAUSE, MAX_PAUSE = 0.02, 0.25
MAX_HOPS = 5
"""How many redirections are followed without a pause: nodes that disagree would redirect for ever."""


class Backoff:
    """Of one call: pauses that grow, until half of its time is over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + min(seconds / 2, MAX_SECONDS)
        self._pause = FIRST_PAUSE
        self._hops = 0

    async def pause(self, *, at_once: bool = False) -> bool:
        """Whether it may be tried again, after a while; `at_once`: it is known where."""
        if time.monotonic() >= self._end:
            return False
        if at_once and self._hops < MAX_HOPS:
            self._hops += 1
            return True
        length, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            time.sleep(length)  # noqa: ASYNC251 - there is no loop: the caller's thread waits itself
            return True
        await asyncio.sleep(length)
        return True
