"""The wire to a server: scripts by their digest, several in one trip, with an event loop or without.

Without one the caller's thread waits itself, on connections of the blocking kind: two changes of thread would cost
more than the call.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError

from windlass.store.redis.script import Script

Word = str | bytes | int | float
LONGEST_WAIT = 2.0
"""Seconds that replicas have."""


class Call(msgspec.Struct, frozen=True):
    """A script with its keys and arguments."""

    script: Script
    keys: Sequence[str]
    arguments: Sequence[Word]

    @property
    def by_sha(self) -> tuple[Word, ...]:
        """As the server knows it."""
        return ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *self.arguments)

    @property
    def by_text(self) -> tuple[Word, ...]:
        """As it must be told once."""
        return ("EVAL", self.script.text, len(self.keys), *self.keys, *self.arguments)


class Wire(Protocol):
    """Who carries calls to the server or servers. Errors are the driver's."""

    async def call(self, call: Call, seconds: float) -> Any:
        """One script."""

    async def calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        """Several, in as few trips as possible, each on its own: replies or errors."""

    async def command(self, *words: Word, seconds: float) -> Any:
        """One plain command; the key, if it has one, is the second word."""

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        """One plain command, to every server that is written to. Who that is, is asked anew where it can change."""

    async def dsn_for(self, key: str, seconds: float) -> str:
        """The driver's address of the server at which a key or a channel is, as far as that is known."""

    async def close(self) -> None:
        """Hang up."""


class NotReplicated(redis.RedisError):
    """The change is made, and fewer replicas than were asked for have it yet."""


class Line:
    """The wire to one server."""

    def __init__(self, dsn: str, replicas: int = 0) -> None:
        """`replicas` must have a change before it is answered."""
        self._dsn = dsn
        self._replicas = replicas
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()
        self._blocking: dict[float, redis.Redis] = {}

    async def call(self, call: Call, seconds: float) -> Any:
        try:
            return await self.command(*call.by_sha, seconds=seconds)
        except NoScriptError:
            return await self.command(*call.by_text, seconds=seconds)

    async def calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        if len(calls) == 1:
            try:
                return [await self.call(calls[0], seconds)]
            except redis.RedisError as error:
                return [error]
        replies = await self.pipelined([call.by_sha for call in calls], seconds)
        missing = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if missing:
            again = await self.pipelined([calls[i].by_text for i in missing], seconds)
            for i, reply in zip(missing, again, strict=True):
                replies[i] = reply
        return replies

    async def command(self, *words: Word, seconds: float) -> Any:
        if self._replicas:
            (reply,) = await self.pipelined([words], seconds)
            if isinstance(reply, Exception):
                raise reply
            return reply
        client = self._client()
        if client is None:
            return self._without_loop(seconds).execute_command(*words)
        async with asyncio.timeout(seconds):
            return await client.execute_command(*words)

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        return [await self.command(*words, seconds=seconds)]

    async def dsn_for(self, key: str, seconds: float) -> str:
        return self._dsn

    async def pipelined(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """Several commands in one trip on one connection: replies or errors."""
        if not self._replicas:
            return await self._pipelined(commands, seconds)
        # On the same connection: what is waited for is what that one has written.
        patience = int(min(seconds / 2, LONGEST_WAIT) * 1000)
        *replies, reached = await self._pipelined([*commands, ("WAIT", self._replicas, patience)], seconds)
        if isinstance(reached, Exception):
            raise reached
        if reached < self._replicas:
            raise NotReplicated(
                f"{reached} of {self._replicas} replicas had the change within {patience / 1000:g} s; it may be lost"
            )
        return replies

    async def close(self) -> None:
        for blocking in self._blocking.values():
            blocking.close()
        self._blocking.clear()
        try:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        except RuntimeError:
            return
        if client is not None:
            await client.aclose()

    async def _pipelined(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        client = self._client()
        if client is None:
            line = self._without_loop(seconds).pipeline(transaction=False)
            for words in commands:
                line.execute_command(*words)
            return list(line.execute(raise_on_error=False))
        async with asyncio.timeout(seconds):
            pipe = client.pipeline(transaction=False)
            for words in commands:
                pipe.execute_command(*words)
            return list(await pipe.execute(raise_on_error=False))

    def _client(self) -> redis.asyncio.Redis | None:
        """The connections of this loop; None where there is no loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        client = self._clients.get(loop)
        if client is None:
            retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
            client = self._clients[loop] = redis.asyncio.Redis.from_url(self._dsn, retry=retry)
        return client

    def _without_loop(self, seconds: float) -> redis.Redis:
        if seconds not in self._blocking:
            retry = redis.retry.Retry(NoBackoff(), 0)
            self._blocking[seconds] = redis.Redis.from_url(
                self._dsn, retry=retry, socket_timeout=seconds, socket_connect_timeout=seconds
            )
        return self._blocking[seconds]
