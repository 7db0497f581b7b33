"""One connection that all calls of an event loop share: written at once, answered in the order of writing.

The driver connects, greets and reads; what its client does around every call (a pool, a lock, retries, spans) costs
more than the call, so it is left out.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as TimedOut

from windlass.store.redis.packing import Word, packed

Answer = asyncio.Future[Any]

CLOSED = "the connection was closed"
GOODBYE = 0.5
"""Seconds."""


class Pipe:
    """What was written and is not answered is in `_waiting`, oldest first."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._waiting: deque[Answer] = deque()
        self._loop = asyncio.get_running_loop()
        self._reader = self._loop.create_task(self._read())
        self._writing = 0
        """Those whose words the server has not taken yet."""
        self.open = True
        """Whether more may be asked: not after an answer failed to come, even if that of others does."""

    @property
    def busy(self) -> bool:
        """Whether who asks now waits for answers of others."""
        return bool(self._waiting)

    async def ask(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """Several commands in one write: an answer or an error of the server for each; TimeoutError if it is late."""
        answers = [self._loop.create_future() for _ in commands]
        late = self._loop.call_later(seconds, self._give_up, answers)
        try:
            await self._write(answers, packed(commands))
            return [await answer for answer in answers]
        except Disconnected:
            if late.when() <= self._loop.time():
                raise TimeoutError from None  # it was hung up because of that
            raise
        finally:
            late.cancel()
            for answer in answers:
                _forget(answer)

    async def _write(self, answers: Sequence[Answer], words: bytes) -> None:
        """Whoever stops in the middle of it ends the pipe: what the server has of his words is not known."""
        if not self._connection.is_connected:
            self.open = False
            raise Disconnected(CLOSED)  # the driver would connect anew, and mix up the answers
        self._writing += 1
        try:
            # No turn of the loop between these two: the order of answers is that of writing.
            self._waiting.extend(answers)
            await self._connection.send_packed_command(words, check_health=False)
        except BaseException:
            self._hang_up()
            raise
        finally:
            self._writing -= 1

    async def close(self) -> None:
        """Hang up. With TLS a word is said and heard to that end; of a server that is gone none comes."""
        self._end(Disconnected(CLOSED))
        with contextlib.suppress(TimeoutError, TimedOut):
            async with asyncio.timeout(GOODBYE):
                await self._connection.disconnect()
        self._reader.cancel()

    async def _read(self) -> None:
        """Give every answer to who waits for it, for as long as there is a connection, or somebody who waits."""
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
            # It may be what the server said to the first of them; of the others it has said nothing.
            if waiting and not waiting[0].done():
                waiting[0].set_exception(error)
        finally:
            self._end(Disconnected(CLOSED))
            await self._connection.disconnect(nowait=True)

    def _end(self, error: Exception) -> None:
        self.open = False
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)

    def _give_up(self, answers: Sequence[Answer]) -> None:
        """The server may be gone without a word: the next who asks takes another connection."""
        self.open = False
        for answer in answers:
            if not answer.done():
                answer.set_exception(TimeoutError())
        if self._writing or all(answer.done() for answer in self._waiting):
            self._hang_up()

    def _hang_up(self) -> None:
        """At once, whatever is not written yet: a server that reads nothing would keep us in the middle of it."""
        self.open = False
        self._reader.cancel()
        if self._connection._writer is not None:
            self._connection._writer.transport.abort()


class Pipes:
    """The pipe of one event loop, laid again whenever it fails; if not shared, one for each who asks at once."""

    def __init__(self, connect: Callable[[], Awaitable[AbstractConnection]], *, shared: bool = True) -> None:
        self._connect = connect
        self._shared = shared
        self._pipes: list[Pipe] = []
        self._laying = asyncio.Lock()

    async def ask(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """As a pipe's."""
        pipe = self._fit()
        if pipe is None:
            pipe = await self._lay(seconds)
        return await pipe.ask(commands, seconds)

    async def close(self) -> None:
        """Hang up."""
        for pipe in self._pipes:
            await pipe.close()

    def _fit(self) -> Pipe | None:
        for pipe in self._pipes:
            if pipe.open and (self._shared or not pipe.busy):
                return pipe
        return None

    async def _lay(self, seconds: float) -> Pipe:
        try:
            async with asyncio.timeout(seconds), self._laying:
                pipe = self._fit()
                if pipe is None:
                    pipe = Pipe(await self._connect())
                    self._pipes = [pipe, *(each for each in self._pipes if each.open)]
                return pipe
        except TimeoutError as error:
            raise TimedOut(f"connecting to the server took more than {seconds:g} s") from error


def _forget(answer: Answer) -> None:
    """Nobody waits for it any more; what went wrong with it was said already."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()
