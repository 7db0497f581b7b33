"""Subscriptions to channels of queues. A lost connection is noticed, and replaced.

Each queue is subscribed to at the server that has it: on a cluster of Redis 7 or later nothing is published
elsewhere.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError

from windlass.store.redis.connection.address import Kind
from windlass.store.redis.connection.driver import connect, connection_errors, disconnect
from windlass.store.redis.connection.errors import DRIVER_ERRORS, message_of
from windlass.store.redis.connection.server import Server

PROBE_SECONDS = 5.0
"""Seconds of silence after which the connection is checked."""
TIMEOUT_SECONDS = 2.0
FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0
SHARDED_SINCE = 7
_VERSION = re.compile(rb"redis_version:(\d+)")

OnMessage = Callable[[str], None]
"""Called with a channel for each message, and when its subscription begins: something may have been missed."""


class Subscriptions:
    """Subscribers, one at each server that has a queue with a wanted channel."""

    def __init__(
        self, server: Server, wanted: Callable[[], Mapping[str, Collection[str]]], on_message: OnMessage
    ) -> None:
        """`wanted` returns the channels by queue; call `refresh` when they change."""
        self._server = server
        self._wanted = wanted
        self._on_message = on_message
        self._servers: dict[str, str] = {}
        """queue → its server, as far as that is known."""
        self._lost: dict[str, str] = {}
        """queue → why its channels are not subscribed to."""
        self._subscribers: dict[str, tuple[Subscriber, asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._pause = FIRST_PAUSE

    @property
    def outage(self) -> str | None:
        """Why some channels are not subscribed to; None: all are, or it was not tried yet."""
        return next(iter(self._lost.values()), None)

    def refresh(self) -> None:
        """Subscribe to what is wanted now."""
        self._changed.set()

    def is_subscribed(self, queue: str, channel: str) -> bool:
        """Whether the channel is subscribed to."""
        by_server = self._subscribers.get(self._servers.get(queue, ""))
        return by_server is not None and by_server[0].is_subscribed(channel)

    async def run(self) -> None:
        """Keep the subscriptions, until cancelled."""
        self._changed, self._servers, self._subscribers = asyncio.Event(), {}, {}
        try:
            while True:
                wanted = self._wanted()
                self._lost = {queue: why for queue, why in self._lost.items() if queue in wanted}
                try:
                    async with asyncio.timeout(2 * TIMEOUT_SECONDS):
                        await self._find_servers(wanted)
                except (*DRIVER_ERRORS, TimeoutError) as error:
                    self._note_loss(wanted.keys() - self._servers.keys(), error)
                self._subscribe(wanted)
                await self._changed.wait()
                self._changed.clear()
        finally:
            tasks = [task for _, task in self._subscribers.values()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _find_servers(self, wanted: Collection[str]) -> None:
        """After a loss the list of masters is read again."""
        wire, unknown = self._server.wire, sorted(set(wanted) - self._servers.keys())
        if unknown and self._lost:
            await wire.each("PING", seconds=TIMEOUT_SECONDS)
        for queue in unknown:
            self._servers[queue] = await wire.dsn_for(self._server.keys.channel(queue), TIMEOUT_SECONDS)

    def _subscribe(self, wanted: Mapping[str, Collection[str]]) -> None:
        by_server: dict[str, set[str]] = defaultdict(set)
        for queue, channels in wanted.items():
            if queue in self._servers:
                by_server[self._servers[queue]].update(channels)
        for dsn in by_server.keys() - self._subscribers.keys():
            subscriber = Subscriber(dsn, self._on_any_message, clustered=self._server.address.kind is Kind.CLUSTER)
            self._subscribers[dsn] = subscriber, asyncio.create_task(self._run_subscriber(dsn, subscriber))
        for dsn, (subscriber, _) in self._subscribers.items():
            subscriber.set_channels(by_server.get(dsn, ()))

    async def _run_subscriber(self, dsn: str, subscriber: "Subscriber") -> None:
        """Run a subscriber until its connection ends; after a pause the servers of its queues are looked up again."""
        try:
            await subscriber.listen()
        except (*DRIVER_ERRORS, TimeoutError) as error:
            del self._subscribers[dsn]
            lost = [queue for queue, server in self._servers.items() if server == dsn]
            for queue in lost:
                del self._servers[queue]
            self._note_loss(lost, error)

    def _note_loss(self, queues: Collection[str], error: Exception) -> None:
        self._lost |= dict.fromkeys(queues, f"the subscription is lost: {message_of(error)}")
        asyncio.get_running_loop().call_later(self._pause, self._changed.set)
        self._pause = min(2 * self._pause, MAX_PAUSE)

    def _on_any_message(self, channel: str) -> None:
        if self._lost:
            self._lost.pop(self._server.keys.queue_of(channel), None)
            self._pause = self._pause if self._lost else FIRST_PAUSE
        self._on_message(channel)


class Subscriber:
    """A connection to one server that subscribes to the wanted channels."""

    def __init__(self, dsn: str, on_message: OnMessage, *, clustered: bool) -> None:
        self._dsn = dsn
        self._on_message = on_message
        self._clustered = clustered
        self._wanted: frozenset[str] = frozenset()
        self._asked: set[str] = set()
        self._confirmed: set[str] = set()
        self._changed = asyncio.Event()

    def set_channels(self, channels: Collection[str]) -> None:
        """Subscribe to these channels and no others."""
        self._wanted = frozenset(channels)
        self._changed.set()

    def is_subscribed(self, channel: str) -> bool:
        """Whether the server has confirmed the subscription."""
        return channel in self._confirmed

    async def listen(self) -> None:
        """Listen until the connection is lost, or a channel has moved to another server."""
        try:
            await self._listen()
        except NoPermissionError:
            if not self._clustered:
                raise
            self._clustered = False  # then scripts of this user may not publish on shard channels either
            await self._listen()

    async def _listen(self) -> None:
        connection = connection_to(self._dsn)
        self._asked.clear()
        self._confirmed.clear()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await connect(connection)
                kind = "S" if self._clustered and await _major_of(connection) >= SHARDED_SINCE else ""
            subscribing = asyncio.get_running_loop().create_task(self._keep_subscribed(connection, kind))
            try:
                while not subscribing.done():
                    self._handle(await next_message(connection))
                await subscribing
            finally:
                subscribing.cancel()
        finally:
            await disconnect(connection, nowait=True)

    async def _keep_subscribed(self, connection: AbstractConnection, kind: str) -> None:
        """Subscribe to what is wanted, and unsubscribe from the rest, whenever that changes."""
        while True:
            # A queue's own channel comes before those of its jobs: their names begin with it.
            fresh, old = sorted(self._wanted - self._asked), sorted(self._asked - self._wanted)
            self._asked = set(self._wanted)
            self._confirmed &= self._asked
            # One at a time: those of one command would have to be in one hash slot.
            commands = [(f"{kind}SUBSCRIBE", each) for each in fresh] + [(f"{kind}UNSUBSCRIBE", each) for each in old]
            if commands:
                with connection_errors():
                    await connection.send_packed_command(connection.pack_commands(commands))
            await self._changed.wait()
            self._changed.clear()

    def _handle(self, word: object) -> None:
        match word:
            case [b"subscribe" | b"ssubscribe" | b"message" | b"smessage", bytes(channel), *_]:
                self._confirmed.update({channel.decode()} & self._asked)
                self._on_message(channel.decode())
            case [b"sunsubscribe", bytes(channel), *_] if channel.decode() in self._asked:
                raise redis.ConnectionError("a queue has moved to another server")


async def _major_of(connection: AbstractConnection) -> int:
    """The version of the server, its first number."""
    with connection_errors():
        await connection.send_command("INFO", "server")
        found = _VERSION.search(await connection.read_response())
    return int(found[1]) if found else 0


def connection_to(dsn: str) -> AbstractConnection:
    """A connection for messages, not open yet."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    # In the older protocol messages look like replies.
    pool = redis.asyncio.ConnectionPool.from_url(dsn, retry=retry, socket_timeout=None, protocol=2)
    connection: AbstractConnection = pool.make_connection()
    return connection


async def next_message(connection: AbstractConnection) -> Sequence[bytes]:
    """The next message; raises TimeoutError if none comes, not even the reply to a PING."""
    with connection_errors():
        word = await connection.read_response(timeout=PROBE_SECONDS, disconnect_on_error=False)
        if word is None:
            await connection.send_command("PING")
            word = await connection.read_response(timeout=TIMEOUT_SECONDS, disconnect_on_error=False)
    if word is None:
        raise TimeoutError
    found: Sequence[bytes] = word
    return found
