"""A wire on which one step goes wrong: the server refuses a call, or does it and the answer is lost."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.wire import Call, Wire


class FaultyWire:
    """Counts scripts and commands; answers the one with the number `fails_at` with `error`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.steps = 0
        self.fails_at = 0
        self.error: Exception | None = None
        self.done = False
        """Whether the server has done the step all the same."""
        self.before: Callable[[str], Awaitable[None]] | None = None
        """Called with the name of each script before it is sent."""

    def fail_at(self, step: int, error: Exception, *, done: bool) -> None:
        """From now on: the first step is number 1."""
        self.steps, self.fails_at, self.error, self.done = 0, step, error, done

    def recover(self) -> bool:
        """Nothing goes wrong any more: whether anything did."""
        failed = 0 < self.fails_at <= self.steps
        self.fails_at = 0
        return failed

    async def call(self, call: Call, seconds: float, *, patient: bool = True) -> Any:
        (reply,) = await self.calls([call], seconds)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        return [await self._one(call, seconds) for call in calls]

    async def command(self, *words: Word, seconds: float, patient: bool = True) -> Any:
        error = self._next()
        if error is not None and not self.done:
            raise error
        reply = await self._wire.command(*words, seconds=seconds)
        if error is not None:
            raise error
        return reply

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        return await self._wire.each(*words, seconds=seconds)

    async def dsn_for(self, key: str, seconds: float) -> str:
        return await self._wire.dsn_for(key, seconds)

    async def close(self) -> None:
        await self._wire.close()

    async def _one(self, call: Call, seconds: float) -> Any:
        error = self._next()
        if error is not None and not self.done:
            return error
        if self.before is not None:
            await self.before(call.script.name)
        (reply,) = await self._wire.calls([call], seconds)
        return reply if error is None else error

    def _next(self) -> Exception | None:
        self.steps += 1
        return self.error if self.steps == self.fails_at else None
