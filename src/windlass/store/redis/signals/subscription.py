"""A subscription to the hints of some queues. A lost connection is noticed, and replaced.

Each queue is subscribed to at the server that has it: on a cluster of Redis 7 or later nothing is published
elsewhere.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

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
PATIENCE_SECONDS = 2.0
FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0
SHARDED_SINCE = 7
_VERSION = re.compile(rb"redis_version:(\d+)")

Channels = tuple[str, ...]


class Subscription:
    """Calls `hear` for everything that is said, and when it begins to listen: something may have been missed."""

    def __init__(self, server: Server, queues: tuple[str, ...], hear: Callable[[], None]) -> None:
        self._server = server
        self._channels = tuple(server.keys.channel(queue) for queue in queues)
        self._on_message = hear
        self._lost: dict[Channels, str] = {}

    @property
    def silence(self) -> str | None:
        """Why not all is heard; None: it is, or it was not tried yet."""
        return next(iter(self._lost.values()), None)

    async def run(self) -> None:
        """Until cancelled."""
        await self._attend(self._channels)

    async def _attend(self, channels: Channels) -> None:
        """Until cancelled; those of several servers are listened to each on its own from then on."""
        pause = FIRST_PAUSE
        while True:
            try:
                homes = await self._homes(channels)
                if len(homes) > 1:
                    self._lost.pop(channels, None)
                    await asyncio.gather(*map(self._attend, homes.values()))
                await self._listen(next(iter(homes)), channels)
            except (*DRIVER_ERRORS, TimeoutError) as error:
                if channels not in self._lost:  # all was well until now
                    pause = FIRST_PAUSE
                self._lost[channels] = f"the subscription is lost: {message_of(error)}"
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)

    async def _homes(self, channels: Channels) -> dict[str, Channels]:
        """The servers that keep these queues; after a loss they are asked for anew."""
        wire = self._server.wire
        if channels in self._lost:
            await wire.each("PING", seconds=PATIENCE_SECONDS)
        homes: dict[str, list[str]] = defaultdict(list)
        for channel in channels:
            homes[await wire.dsn_for(channel, PATIENCE_SECONDS)].append(channel)
        return {dsn: tuple(those) for dsn, those in homes.items()}

    async def _listen(self, dsn: str, channels: Channels) -> None:
        """On a connection of its own, until it is lost. A master that is none any more is found out here too."""
        connection = connection_to(dsn)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await connect(connection)
                with connection_errors():
                    await self._subscribe(connection, channels)
            self._lost.pop(channels, None)
            self._on_message()
            while True:
                kind = (await next_message(connection))[0]
                if kind in (b"message", b"smessage"):
                    self._on_message()
                elif kind == b"sunsubscribe":
                    raise redis.ConnectionError("a queue has moved to another server")
        finally:
            await disconnect(connection, nowait=True)

    async def _subscribe(self, connection: AbstractConnection, channels: Channels) -> None:
        if self._server.address.kind is Kind.CLUSTER and await major_of(connection) >= SHARDED_SINCE:
            try:
                await _subscribe_all(connection, "SSUBSCRIBE", channels)
                return
            except NoPermissionError:  # then scripts of this user may not speak there either
                await disconnect(connection, nowait=True)
                await connect(connection)
        await _subscribe_all(connection, "SUBSCRIBE", channels)


async def _subscribe_all(connection: AbstractConnection, command: str, channels: Channels) -> None:
    """One at a time: those of one command would have to be in one slot."""
    for channel in channels:
        await connection.send_command(command, channel)
    for _ in channels:
        await connection.read_response()


async def major_of(connection: AbstractConnection) -> int:
    """The version of the server, its first number."""
    with connection_errors():
        await connection.send_command("INFO", "server")
        found = _VERSION.search(await connection.read_response())
    return int(found[1]) if found else 0


def connection_to(dsn: str) -> AbstractConnection:
    """One on which one listens: not open yet."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    # In the older protocol what is published comes as answers do.
    pool = redis.asyncio.ConnectionPool.from_url(dsn, retry=retry, socket_timeout=None, protocol=2)
    connection: AbstractConnection = pool.make_connection()
    return connection


async def next_message(connection: AbstractConnection) -> Sequence[bytes]:
    """What is said next; raises TimeoutError if nothing is, although a word was asked for."""
    with connection_errors():
        word = await connection.read_response(timeout=PROBE_SECONDS, disconnect_on_error=False)
        if word is None:
            await connection.send_command("PING")
            word = await connection.read_response(timeout=PATIENCE_SECONDS, disconnect_on_error=False)
    if word is None:
        raise TimeoutError
    found: Sequence[bytes] = word
    return found
