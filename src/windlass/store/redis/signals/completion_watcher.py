"""Waiting for jobs to end: scripts publish the end of a job in a queue that has subscribers.

Nothing is stored for it: a subscription ends with its connection. It is made before the first read, so no end is
missed. Each queue is subscribed to at the server that has it.
"""

import asyncio
from collections import defaultdict
from contextvars import Context

from windlass.core.ids import JobId
from windlass.store.contract_upkeep import OnEnded
from windlass.store.redis.connection.address import Kind
from windlass.store.redis.connection.errors import DRIVER_ERRORS, message_of
from windlass.store.redis.connection.server import Server
from windlass.store.redis.signals.subscriber import Subscriber
from windlass.store.redis.signals.subscription import FIRST_PAUSE, MAX_PAUSE, PATIENCE_SECONDS


class RedisCompletionWatcher:
    """A subscriber at each server that has a queue with waited-for jobs."""

    def __init__(self, server: Server, tell: OnEnded) -> None:
        self._server = server
        self._tell = tell
        self._queues: dict[JobId, str] = {}
        self._fresh: set[JobId] = set()
        self._homes: dict[str, str] = {}
        """queue → the server that keeps it, as far as it was found out."""
        self._subscribers: dict[str, tuple[Subscriber, asyncio.Task[None]]] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pause = FIRST_PAUSE
        self.silence: str | None = "nobody listens yet"

    def watch(self, job: JobId, queue: str) -> None:
        if self._queues.get(job) == queue:
            return
        self._queues[job] = queue
        self._fresh.add(job)
        self._news.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def unwatch(self, job: JobId) -> None:
        if self._queues.pop(job, None) is not None:
            self._news.set()

    async def close(self) -> None:
        tasks = [task for _, task in self._subscribers.values()]
        if self._task is not None:
            tasks.append(self._task)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self) -> None:
        """Let what is listened to be what is watched."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                async with asyncio.timeout(2 * PATIENCE_SECONDS):
                    await self._find_homes()
            except (*DRIVER_ERRORS, TimeoutError) as error:
                self._lose(error)
            self._listen()

    async def _find_homes(self) -> None:
        """After a loss they are asked for anew."""
        wire = self._server.wire
        unknown = set(self._queues.values()) - self._homes.keys()
        if unknown and self._pause > FIRST_PAUSE:
            await wire.each("PING", seconds=PATIENCE_SECONDS)
        for queue in sorted(unknown):
            self._homes[queue] = await wire.dsn_for(self._server.keys.ends(queue), PATIENCE_SECONDS)

    def _listen(self) -> None:
        keys = self._server.keys
        wanted: dict[str, set[str]] = defaultdict(set)
        for job, queue in self._queues.items():
            if queue in self._homes:
                wanted[self._homes[queue]].update((keys.ends(queue), keys.end(queue, job)))
        for dsn in wanted.keys() - self._subscribers.keys():
            subscriber = Subscriber(dsn, self._on_message, clustered=self._server.address.kind is Kind.CLUSTER)
            self._subscribers[dsn] = (
                subscriber,
                asyncio.get_running_loop().create_task(self._attend(dsn, subscriber), context=Context()),
            )
        for dsn, (subscriber, _) in self._subscribers.items():
            subscriber.want(wanted.get(dsn, ()))
        self._tell_known()

    def _tell_known(self) -> None:
        """Report jobs whose channels were subscribed before they were watched: their end may have been missed."""
        fresh, self._fresh = self._fresh, set()
        for job in fresh & self._queues.keys():
            queue = self._queues[job]
            at_home = self._subscribers.get(self._homes.get(queue, ""))
            if at_home is not None and at_home[0].hears(self._server.keys.end(queue, job)):
                self._tell((job,))

    async def _attend(self, dsn: str, subscriber: Subscriber) -> None:
        """Until it hears no more: then its queues are looked for anew, a little later."""
        try:
            await subscriber.listen()
        except (*DRIVER_ERRORS, TimeoutError) as error:
            self._homes = {queue: home for queue, home in self._homes.items() if home != dsn}
            self._subscribers.pop(dsn)
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self.silence = f"the subscription is lost: {message_of(error)}"
        asyncio.get_running_loop().call_later(self._pause, self._news.set)
        self._pause = min(2 * self._pause, MAX_PAUSE)

    def _on_message(self, channel: str) -> None:
        """It is listened to from now on, or its job has ended."""
        self.silence, self._pause = None, FIRST_PAUSE
        job = channel.rpartition(":")[2]
        if job in self._queues:
            self._tell((job,))
