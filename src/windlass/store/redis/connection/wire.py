"""The wire to a server: scripts by their digest, several in one round trip, with or without an event loop.

Without a loop the caller's thread waits on a blocking connection: two changes of thread would cost more than the
call.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.exceptions import MovedError, NoScriptError

from windlass.store.drive import running_loop
from windlass.store.redis.connection.driver import Word, connect
from windlass.store.redis.connection.errors import DRIVER_ERRORS, NotReplicated, is_retryable
from windlass.store.redis.connection.pipe import BlockingConnections, Pipes
from windlass.store.redis.scripts.loader import Script

MAX_WAIT = 2.0
"""Timeout in seconds for replicas to confirm a change."""


class Call(msgspec.Struct, frozen=True):
    """A script with its keys and arguments."""

    script: Script
    keys: Sequence[str]
    arguments: Sequence[Word]

    @property
    def size(self) -> int:
        """About how many bytes the call sends."""
        return sum(len(word) for word in self.arguments if isinstance(word, bytes))

    @property
    def by_sha(self) -> tuple[Word, ...]:
        """The command with the script's digest."""
        return ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *self.arguments)

    @property
    def by_text(self) -> tuple[Word, ...]:
        """The command with the script's text, for a server that does not know its digest."""
        return ("EVAL", self.script.text, len(self.keys), *self.keys, *self.arguments)


class Wire(Protocol):
    """Sends calls to the server or servers. Errors are the driver's.

    A call that is not `patient` does not wait for one absent server of several.
    """

    async def call(self, call: Call, seconds: float, *, patient: bool = True) -> Any:
        """One script."""
        return _result((await self.calls([call], seconds, patient=patient))[0])

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        """Several, in as few trips as possible, each on its own: replies or errors."""

    async def command(self, *words: Word, seconds: float, patient: bool = True) -> Any:
        """Send a plain command that does not block; its key, if any, is the second word."""

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        """Send a plain command to every master: replies or errors. The list of masters is read again."""

    async def dsn_for(self, key: str, seconds: float) -> str:
        """The driver's address of the server that has a key or a channel, as far as that is known."""

    async def close(self) -> None:
        """Close all connections."""


class ServerWire(Wire):
    """The wire to one server."""

    def __init__(self, dsn: str, replicas: int = 0) -> None:
        """`replicas`: how many must have a change before a call returns."""
        self._dsn = dsn
        self._replicas = replicas
        self._pipes: WeakKeyDictionary[asyncio.AbstractEventLoop, Pipes] = WeakKeyDictionary()
        self._threads: dict[float, BlockingConnections] = {}

    async def call(self, call: Call, seconds: float, *, patient: bool = True) -> Any:
        ask = self.replicated if call.script.writes and self._replicas else self.pipelined
        (reply,) = await ask((call.by_sha,), seconds)
        if isinstance(reply, NoScriptError):
            (reply,) = await ask((call.by_text,), seconds)
        return _result(reply)

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        # Scripts that only read need no WAIT.
        ask = self.replicated if any(call.script.writes for call in calls) else self.pipelined
        replies = await ask([call.by_sha for call in calls], seconds)
        missing = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if missing:
            try:
                again = await ask([calls[i].by_text for i in missing], seconds)
            except DRIVER_ERRORS as error:
                again = [error] * len(missing)  # the other calls are done
            for i, reply in zip(missing, again, strict=True):
                replies[i] = reply
        return replies

    async def command(self, *words: Word, seconds: float, patient: bool = True) -> Any:
        return _result((await self.pipelined([words], seconds))[0])

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        return [await self.command(*words, seconds=seconds)]

    async def dsn_for(self, key: str, seconds: float) -> str:
        return self._dsn

    async def replicated(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """The same; raises NotReplicated unless enough replicas have the changes."""
        if not self._replicas:
            return await self.pipelined(commands, seconds)
        # On the same connection: WAIT is about the writes of its own connection.
        patience = int(min(seconds / 2, MAX_WAIT) * 1000)
        *replies, reached = await self.pipelined([*commands, ("WAIT", self._replicas, patience)], seconds)
        if all(isinstance(reply, Exception) for reply in replies):
            return replies  # nothing was changed
        if isinstance(reached, Exception):
            raise NotReplicated(f"the change is made, and WAIT for replicas was refused: {reached}") from reached
        if reached < self._replicas:
            raise NotReplicated(
                f"{reached} of {self._replicas} replicas had the change within {patience / 1000:g} s; it may be lost "
                "(replicas= is more than are connected, or they are slow)"
            )
        return replies

    async def close(self) -> None:
        for threads in self._threads.values():
            threads.close()
        self._threads.clear()
        try:
            pipes = self._pipes.pop(asyncio.get_running_loop(), None)
        except RuntimeError:
            return
        if pipes is not None:
            await pipes.close()

    async def pipelined(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """Send all commands in one write, on the connection of this loop; without a loop the thread blocks."""
        loop = running_loop()
        if loop is None:
            return self._without_loop(seconds).ask(commands)
        pipes = self._pipes.get(loop)
        if pipes is None:
            pipes = self._pipes[loop] = Pipes(self._connect, shared=not self._replicas)
        return await pipes.ask(commands, seconds)

    async def _connect(self) -> AbstractConnection:
        retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
        pool = redis.asyncio.ConnectionPool.from_url(self._dsn, retry=retry, socket_timeout=None)
        connection: AbstractConnection = pool.make_connection()
        await connect(connection)
        return connection

    def _without_loop(self, seconds: float) -> BlockingConnections:
        if seconds not in self._threads:
            retry = redis.retry.Retry(NoBackoff(), 0)
            pool = redis.ConnectionPool.from_url(
                self._dsn, retry=retry, socket_timeout=seconds, socket_connect_timeout=seconds
            )
            # Not by the pool's own method, which refuses more than a hundred connections, closed ones included.
            self._threads[seconds] = BlockingConnections(lambda: pool.connection_class(**pool.connection_kwargs))
        return self._threads[seconds]


def _result(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


MAX_SECONDS = 5.0
FIRST_PAUSE, MAX_PAUSE = 0.02, 0.25
MAX_HOPS = 5
"""How many redirections are followed without a pause: nodes that disagree would redirect for ever."""


class Backoff:
    """The growing pauses of one call, for half of its time and at most MAX_SECONDS."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + min(seconds / 2, MAX_SECONDS)
        self._pause = FIRST_PAUSE
        self._hops = 0

    async def pause(self, *, at_once: bool = False) -> bool:
        """Pause, and return whether to retry; `at_once`: without a pause, since the right server is known."""
        if time.monotonic() >= self._end:
            return False
        if at_once and self._hops < MAX_HOPS:
            self._hops += 1
            return True
        length, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            time.sleep(length)  # noqa: ASYNC251 - without a loop the caller's thread blocks
            return True
        await asyncio.sleep(length)
        return True


class RetryingWire(Wire):
    """A wire over several servers: calls that were certainly not executed are retried for a while."""

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        replies: list[Any] = [None] * len(calls)
        left = list(range(len(calls)))
        backoff = Backoff(seconds)
        while left:
            for i, reply in zip(left, await self._try_calls([calls[i] for i in left], seconds), strict=True):
                replies[i] = reply
            left = [i for i in left if self._may_retry(replies[i], patient)]
            if left and not await backoff.pause(at_once=any(isinstance(replies[i], MovedError) for i in left)):
                break
        return replies

    async def command(self, *words: Word, seconds: float, patient: bool = True) -> Any:
        backoff = Backoff(seconds)
        while True:
            try:
                return await self._try_command(words, seconds)
            except DRIVER_ERRORS as error:
                moved = isinstance(error, MovedError)
                if not self._may_retry(error, patient) or not await backoff.pause(at_once=moved):
                    raise

    async def _try_calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        """Send each call once; returns replies or errors."""
        raise AssertionError

    async def _try_command(self, words: tuple[Word, ...], seconds: float) -> Any:
        raise AssertionError

    def _may_retry(self, reply: Any, patient: bool) -> bool:
        return is_retryable(reply)
