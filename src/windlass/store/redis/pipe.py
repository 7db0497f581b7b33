"""One connection that all calls of an event loop share: written at once, answered in the order of writing.

The driver connects, greets and reads; what its client does around every call (a pool, a lock, retries, spans) costs
more than the call, so it is left out.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import ResponseError

from windlass.store.redis.packing import Word, packed

Answer = asyncio.Future[Any]

CLOSED = "the connection was closed"


class Pipe:
    """What was written and is not answered is in `_waiting`, oldest first; once broken it stays so."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._waiting: deque[Answer] = deque()
        self._loop = asyncio.get_running_loop()
        self._reader = self._loop.create_task(self._read())
        self.broken = False

    async def ask(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """Several commands in one write: an answer or an error of the server for each; TimeoutError if it is late."""
        if self.broken:
            raise Disconnected(CLOSED)
        answers = [self._loop.create_future() for _ in commands]
        late = self._loop.call_later(seconds, _give_up, answers)
        try:
            # No turn of the loop between these two: the order of answers is that of writing.
            self._waiting.extend(answers)
            await self._connection.send_packed_command(packed(commands), check_health=False)
            return [await answer for answer in answers]
        finally:
            late.cancel()
            for answer in answers:
                _forget(answer)

    async def close(self) -> None:
        """Hang up."""
        self._reader.cancel()
        self._break(Disconnected(CLOSED))
        await self._connection.disconnect(nowait=True)

    async def _read(self) -> None:
        """Give every answer to who waits for it, for as long as there is a connection."""
        read, waiting = self._connection.read_response, self._waiting
        try:
            while True:
                try:
                    reply = await read()
                except ResponseError as error:
                    reply = error
                answer = waiting.popleft()
                if not answer.done():
                    answer.set_result(reply)
        except Exception as error:
            self._break(error)
        finally:
            self._break(Disconnected(CLOSED))
            await self._connection.disconnect(nowait=True)

    def _break(self, error: Exception) -> None:
        self.broken = True
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)


class Pipes:
    """The pipe of one event loop, laid again whenever it is broken."""

    def __init__(self, connect: Callable[[], Awaitable[AbstractConnection]]) -> None:
        self._connect = connect
        self._pipe: Pipe | None = None
        self._laying = asyncio.Lock()

    async def ask(self, commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        """As the pipe's."""
        pipe = self._pipe
        if pipe is None or pipe.broken:
            pipe = await self._lay(seconds)
        return await pipe.ask(commands, seconds)

    async def close(self) -> None:
        """Hang up."""
        if self._pipe is not None:
            await self._pipe.close()

    async def _lay(self, seconds: float) -> Pipe:
        async with asyncio.timeout(seconds), self._laying:
            if self._pipe is None or self._pipe.broken:
                self._pipe = Pipe(await self._connect())
            return self._pipe


def _give_up(answers: Sequence[Answer]) -> None:
    for answer in answers:
        if not answer.done():
            answer.set_exception(TimeoutError())


def _forget(answer: Answer) -> None:
    """Nobody waits for it any more; what went wrong with it was said already."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()
