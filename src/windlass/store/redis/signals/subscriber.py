"""An ear: a connection that listens at one server to as many channels as are wanted at the moment."""

import asyncio
from collections.abc import Callable, Collection

import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import NoPermissionError

from windlass.store.redis.connection.driver import connect, connection_errors, disconnect
from windlass.store.redis.signals.subscription import (
    PATIENCE_SECONDS,
    SHARDED_SINCE,
    connection_to,
    major_of,
    next_message,
)


class Subscriber:
    """Calls `hear` with a channel when something is said there, and when it begins to listen there."""

    def __init__(self, dsn: str, hear: Callable[[str], None], *, clustered: bool) -> None:
        self._dsn = dsn
        self._on_message = hear
        self._clustered = clustered
        self._wanted: frozenset[str] = frozenset()
        self._asked: set[str] = set()
        self._heard: set[str] = set()
        self._news = asyncio.Event()

    def want(self, channels: Collection[str]) -> None:
        """Listen to these, and to nothing else."""
        self._wanted = frozenset(channels)
        self._news.set()

    def hears(self, channel: str) -> bool:
        """Whether it listens there, and has for a while."""
        return channel in self._heard

    async def listen(self) -> None:
        """Until the connection is lost, or a channel has moved to another server."""
        try:
            await self._listen()
        except NoPermissionError:
            if not self._clustered:
                raise
            self._clustered = False  # then scripts of this user may not speak on shard channels either
            await self._listen()

    async def _listen(self) -> None:
        connection = connection_to(self._dsn)
        self._asked.clear()
        self._heard.clear()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await connect(connection)
                kind = "S" if self._clustered and await major_of(connection) >= SHARDED_SINCE else ""
            asking = asyncio.get_running_loop().create_task(self._ask(connection, kind))
            try:
                while not asking.done():
                    self._take(await next_message(connection))
                await asking
            finally:
                asking.cancel()
        finally:
            await disconnect(connection, nowait=True)

    async def _ask(self, connection: AbstractConnection, kind: str) -> None:
        """Let what is listened to be what is wanted."""
        while True:
            # A queue's own channel comes before those of its jobs: their names begin with it.
            fresh, old = sorted(self._wanted - self._asked), sorted(self._asked - self._wanted)
            self._asked = set(self._wanted)
            self._heard &= self._asked
            # One at a time: those of one command would have to be in one slot.
            commands = [(f"{kind}SUBSCRIBE", each) for each in fresh] + [(f"{kind}UNSUBSCRIBE", each) for each in old]
            if commands:
                with connection_errors():
                    await connection.send_packed_command(connection.pack_commands(commands))
            await self._news.wait()
            self._news.clear()

    def _take(self, word: object) -> None:
        match word:
            case [b"subscribe" | b"ssubscribe" | b"message" | b"smessage", bytes(channel), *_]:
                self._heard.update({channel.decode()} & self._asked)
                self._on_message(channel.decode())
            case [b"sunsubscribe", bytes(channel), *_] if channel.decode() in self._asked:
                raise redis.ConnectionError("a queue has moved to another server")
