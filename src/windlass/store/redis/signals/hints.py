"""Hints: wake-ups for processes that wait for work. They may be lost; polling is always enough.

Scripts publish when a type of a queue gets its first pending job. Every process that serves queues subscribes by
itself, without a hop between an enqueue and a runner. A process that serves none gets hints of its own enqueues only.
"""

import asyncio
import contextlib
import threading
from collections.abc import Sequence

from windlass.store.drive import running_loop
from windlass.store.redis.connection.server import Server
from windlass.store.redis.signals.subscription import Subscriptions
from windlass.store.waits import HintWaiters


class Hints(HintWaiters):
    """The hints that this process receives."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._hinted = threading.Condition()
        self._blocked = 0
        """Number of waiting threads without a loop."""
        self._subscriptions: Subscriptions | None = None
        self._task: asyncio.Task[None] | None = None
        server.on_enqueue = self.notify

    @property
    def outage(self) -> str | None:
        """Why hints of other processes do not arrive; None if they do, or if there is no subscription."""
        return None if self._subscriptions is None else self._subscriptions.outage

    def subscribe(self, queues: Sequence[str]) -> None:
        """Subscribe to these queues."""
        self._stop()
        channels = {queue: (self._server.keys.channel(queue),) for queue in queues}
        self._subscriptions = Subscriptions(self._server, lambda: channels, lambda _: self.notify())
        self._listen()

    def notify(self) -> None:
        super().notify()
        if self._blocked:
            with self._hinted:
                self._hinted.notify_all()

    async def wait(self, cursor: int, seconds: float) -> bool:
        if running_loop() is None:
            return self._wait_blocking(cursor, seconds)
        self._listen()
        return await super().wait(cursor, seconds)

    def _wait_blocking(self, cursor: int, seconds: float) -> bool:
        with self._hinted:
            self._blocked += 1
            try:
                return self._hinted.wait_for(lambda: self._cursor != cursor, seconds)
            finally:
                self._blocked -= 1

    async def close(self) -> None:
        """End the subscription."""
        task = self._task
        self._stop()
        with contextlib.suppress(RuntimeError):  # without a loop there is no task to wait for
            if task is not None and task.get_loop() is asyncio.get_running_loop():
                await asyncio.wait([task])
        self.notify()

    def _listen(self) -> None:
        """Start a listener in the running loop, unless one runs."""
        if self._subscriptions is None or (self._task is not None and not self._task.get_loop().is_closed()):
            return
        with contextlib.suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._subscriptions.run(), name="windlass hints")

    def _stop(self) -> None:
        if self._task is not None and not self._task.get_loop().is_closed():
            self._task.cancel()
        self._task = self._subscriptions = None
