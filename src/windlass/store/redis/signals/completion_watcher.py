"""Waiting for jobs to end: scripts publish the end of a job in a queue that has subscribers.

Nothing is stored for it: a subscription ends with its connection. It is made before the first read, so no end is
missed.
"""

import asyncio
from collections import defaultdict
from contextvars import Context

from windlass.core.ids import JobId
from windlass.store.contract_upkeep import OnEnded
from windlass.store.redis.connection.server import Server
from windlass.store.redis.signals.subscription import Subscriptions


class RedisCompletionWatcher:
    """Subscribes to the ends of watched jobs."""

    def __init__(self, server: Server, on_ended: OnEnded) -> None:
        self._keys = server.keys
        self._on_ended = on_ended
        self._queues: dict[JobId, str] = {}
        self._subscribed = False
        self._subscriptions = Subscriptions(server, self._channels, self._on_message)
        self._task: asyncio.Task[None] | None = None

    @property
    def outage(self) -> str | None:
        return self._subscriptions.outage if self._subscribed else "the first subscription is not made yet"

    def watch(self, job: JobId, queue: str) -> None:
        if self._queues.get(job) == queue:
            return
        self._queues[job] = queue
        loop = asyncio.get_running_loop()
        if self._task is None:
            self._task = loop.create_task(self._subscriptions.run(), context=Context())
        elif self._subscriptions.is_subscribed(queue, self._keys.end(queue, job)):
            loop.call_soon(self._on_message, job)  # the end may have been published before the watch
        self._subscriptions.refresh()

    def unwatch(self, job: JobId) -> None:
        if self._queues.pop(job, None) is not None:
            self._subscriptions.refresh()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _channels(self) -> dict[str, set[str]]:
        wanted: dict[str, set[str]] = defaultdict(set)
        for job, queue in self._queues.items():
            wanted[queue].update((self._keys.ends(queue), self._keys.end(queue, job)))
        return wanted

    def _on_message(self, channel: str) -> None:
        """A message on the channel of a job, or its subscription has begun: check the job."""
        self._subscribed = True
        job = channel.rpartition(":")[2]
        if job in self._queues:
            self._on_ended((job,))
