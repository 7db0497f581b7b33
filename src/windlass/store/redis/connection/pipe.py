"""Connections: one that all calls of an event loop share, answered in the order of writing, and blocking ones.

The driver connects, greets and reads; what its client does around every call (a pool, a lock, retries, spans) costs
more than the call, so it is left out.
"""

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.connection import ConnectionInterface
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as TimedOut

from windlass.store.redis.connection.driver import (
    CLOSED,
    Unsent,
    Word,
    abort,
    as_connection_error,
    disconnect,
    is_closed,
    packed,
    write,
)

Answer = asyncio.Future[Any]

CLOSE_SECONDS = 0.5
"""Timeout in seconds for closing."""


class Pipe:
    """A connection of one event loop; `_waiting` has the requests without a reply, oldest first."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._waiting: deque[Answer] = deque()
        self._loop = asyncio.get_running_loop()
        self._writing = 0
        """Number of writes under way."""
        self.open = True
        """Whether it takes new requests: not after one timed out, even if replies to others still come."""
        # Last, as an eager task factory runs its first step at once; in its own context, as it outlives the caller.
        self._reader = self._loop.create_task(self._read(), context=Context())

    @property
    def busy(self) -> bool:
        """Whether a new request waits for replies to others."""
        return bool(self._waiting)

    async def ask(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """Send commands in one write: a reply or an error of the server for each; TimeoutError if they are late."""
        answers = [self._loop.create_future() for _ in commands]
        late = self._loop.call_later(seconds, self._time_out, answers)
        try:
            await self._write(answers, packed(commands))
            return [await answer for answer in answers]
        except Disconnected:
            if late.when() <= self._loop.time():
                raise TimeoutError from None  # the timeout closed the connection
            raise
        finally:
            late.cancel()
            for answer in answers:
                _forget(answer)

    async def _write(self, answers: Sequence[Answer], words: bytes) -> None:
        """A write that stops in the middle ends the pipe: how much the server received is unknown."""
        if is_closed(self._connection):
            self.open = False
            raise Unsent(CLOSED)
        self._writing += 1
        try:
            # The loop must not run between these two: replies come in the order of writes.
            self._waiting.extend(answers)
            await write(self._connection, words)
        except BaseException:
            self._abort()
            raise
        finally:
            self._writing -= 1

    async def close(self) -> None:
        """Close, with the TLS closing handshake if it takes no longer than CLOSE_SECONDS."""
        self._end(Disconnected(CLOSED))
        with contextlib.suppress(TimeoutError, TimedOut):
            async with asyncio.timeout(CLOSE_SECONDS):
                await disconnect(self._connection)
        self._reader.cancel()

    async def _read(self) -> None:
        """Hand each reply to its request, until the connection ends and no request waits."""
        read, waiting = self._connection.read_response, self._waiting
        try:
            while self.open or waiting:
                try:
                    reply = await read()
                except ResponseError as error:
                    reply = error
                answer = waiting.popleft()
                if not answer.done():
                    answer.set_result(reply)
        except Exception as error:
            # The error may be the reply to the first request; the others have none.
            if waiting and not waiting[0].done():
                waiting[0].set_exception(as_connection_error(error))
        finally:
            self._end(Disconnected(CLOSED))
            await disconnect(self._connection, nowait=True)

    def _end(self, error: Exception) -> None:
        self.open = False
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)

    def _time_out(self, answers: Sequence[Answer]) -> None:
        """The server may be gone without closing the connection: the next request opens another one."""
        self.open = False
        for answer in answers:
            if not answer.done():
                answer.set_exception(TimeoutError())
        if self._writing or all(answer.done() for answer in self._waiting):
            self._abort()

    def _abort(self) -> None:
        """Close without writing the rest: a server that reads nothing would block the write for ever."""
        self.open = False
        self._reader.cancel()
        abort(self._connection)


class Pipes:
    """The pipe of one event loop, reopened whenever it fails; if not shared, one for each concurrent request."""

    def __init__(self, connect: Callable[[], Awaitable[AbstractConnection]], *, shared: bool = True) -> None:
        self._connect = connect
        self._shared = shared
        self._pipes: list[Pipe] = []
        self._opening = asyncio.Lock()

    async def ask(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """As `Pipe.ask`. If the pipe turns out to be closed, nothing was sent, and another one is opened."""
        pipe = self._usable()
        if pipe is not None:
            with contextlib.suppress(Unsent):
                return await pipe.ask(commands, seconds)
        return await (await self._open_pipe(seconds)).ask(commands, seconds)

    async def close(self) -> None:
        """Close all of them."""
        for pipe in self._pipes:
            await pipe.close()

    def _usable(self) -> Pipe | None:
        for pipe in self._pipes:
            if pipe.open and (self._shared or not pipe.busy):
                return pipe
        return None

    async def _open_pipe(self, seconds: float) -> Pipe:
        try:
            async with asyncio.timeout(seconds), self._opening:
                pipe = self._usable()
                if pipe is None:
                    pipe = Pipe(await self._connect())
                    self._pipes = [pipe, *(each for each in self._pipes if each.open)]
                return pipe
        except TimeoutError as error:
            raise TimedOut(f"connecting to the server took more than {seconds:g} s") from error


def _forget(answer: Answer) -> None:
    """Drop an answer that nothing waits for; its error was reported already."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()


TRUSTED_SECONDS = 0.5
"""Seconds after which an idle connection is checked before its use: the server may have closed it."""


class BlockingConnections:
    """Idle connections, the last used first; a forked process starts without any."""

    def __init__(self, make: Callable[[], ConnectionInterface]) -> None:
        self._make = make
        self._idle: list[tuple[ConnectionInterface, float]] = []
        self._process = os.getpid()

    def ask(self, commands: Sequence[tuple[Word, ...]]) -> list[Any]:
        """Send commands in one write: a reply or an error of the server for each."""
        connection = self._take()
        try:
            connection.send_packed_command([packed(commands)], check_health=False)
            answers = [_answer(connection) for _ in commands]
        except BaseException:
            connection.disconnect()
            raise
        self._idle.append((connection, time.monotonic()))
        return answers

    def close(self) -> None:
        """Close all of them."""
        while self._idle:
            self._idle.pop()[0].disconnect()

    def _take(self) -> ConnectionInterface:
        if self._process != os.getpid():
            # After a fork the parent process uses them: they must not even be closed.
            self._idle, self._process = [], os.getpid()
        try:
            connection, used = self._idle.pop()
        except IndexError:
            connection = self._make()
            connection.connect()
            return connection
        if time.monotonic() - used > TRUSTED_SECONDS and _is_stale(connection):
            connection.disconnect()
            connection.connect()
        return connection


def _answer(connection: ConnectionInterface) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _is_stale(connection: ConnectionInterface) -> bool:
    """Whether it was closed, or has an unexpected reply."""
    try:
        return bool(connection.can_read())
    except Exception:
        return True
