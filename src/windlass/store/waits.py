"""Waiting for work: for hints, and for tokens that claims of this process lacked.

A queue is not claimed from before it has tokens again. Checks use the server's clock, waits the machine's. Losing
this state costs a claim that returns nothing.
"""

import asyncio
import contextlib
from itertools import count

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.drive import running_loop

MAX_WAIT: Micros = SECOND
"""After this time a claim is tried again, as a cheaper job may have been enqueued."""


class _Wait(msgspec.Struct, frozen=True):
    at: Micros
    boot: Micros
    rate: str | None


class RateWaits:
    """The rate waits of one process."""

    def __init__(self) -> None:
        self._at: dict[str, _Wait] = {}

    def note(self, queue: str, now: Micros, wait: Micros, rate: str | None) -> None:
        """Note that claims from the queue are useless for this long, as long as its rate is unchanged."""
        wait = min(wait, MAX_WAIT)
        self._at[queue] = _Wait(now + wait, since_boot() + wait, rate)

    def forget(self, queue: str) -> None:
        """Drop the wait of a queue before a claim from it."""
        self._at.pop(queue, None)

    def is_exhausted(self, queue: str, now: Micros, rate: str | None) -> bool:
        """Whether a claim would be useless."""
        wait_end = self._at.get(queue)
        return wait_end is not None and wait_end.rate == rate and wait_end.at - MAX_WAIT <= now < wait_end.at

    def next_in(self) -> Micros | None:
        """How long until the first queue has tokens; None: no queue waits."""
        first = min((wait_end.boot for wait_end in self._at.values()), default=None)
        return None if first is None else max(0, first - since_boot())

    def forget_refilled(self) -> None:
        """Forget the queues that have tokens again."""
        now = since_boot()
        self._at = {queue: wait_end for queue, wait_end in self._at.items() if wait_end.boot > now}


class HintWaiters:
    """A hint advances the cursor and wakes all waiters."""

    def __init__(self) -> None:
        self._cursor = 0
        self._numbers = count(1)
        self._waiting: set[asyncio.Future[None]] = set()

    def cursor(self) -> int:
        """The current position."""
        return self._cursor

    def notify(self) -> None:
        """A hint: wake all waiters."""
        self._cursor = next(self._numbers)
        here = running_loop() if self._waiting else None
        for waiter in list(self._waiting):
            if waiter.get_loop() is here:
                _wake(waiter)
                continue
            with contextlib.suppress(RuntimeError):  # its loop is closed
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    async def wait(self, cursor: int, seconds: float) -> bool:
        """Whether a hint came after the cursor, within the time."""
        if self._cursor != cursor:
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        late = loop.call_later(seconds, _wake, waiter)
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            late.cancel()
            self._waiting.discard(waiter)
        return self._cursor != cursor

    async def wait_for_work(self, rate_waits: RateWaits, cursor: int, seconds: float) -> bool:
        """Whether a hint came, or a queue has tokens again that the last claim lacked."""
        opens = rate_waits.next_in()
        if opens is None or opens >= seconds * SECOND:
            return await self.wait(cursor, seconds)
        await self.wait(cursor, opens / SECOND)
        rate_waits.forget_refilled()
        return True


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
