"""The failpoints of this store: each script that changes anything is a commit of its own, and the wire is watched.

`before_commit` is reached before the first script of a verb, `after_commit` after the first that has changed
anything: what takes several steps is interrupted between them.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import ResponseError

from windlass.store.failpoints import ACTIONS, Failpoints, armed
from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.wire import Call, Wire

CHANGES = ("HSETNX", "HSET", "SADD", "UNLINK", "ZREMRANGEBYSCORE")
"""Plain commands that change anything; all others only read."""


def armed_wire(wire: Wire) -> "WatchedWire | None":
    """A wire with the failpoints that the environment sets; None if it sets none."""
    points = armed(ResponseError)
    return None if points is None else WatchedWire(wire, points)


def as_verb(watched: "WatchedWire | None", verb: str) -> AbstractContextManager[None]:
    """Calls in this context count as calls of this verb."""
    return nullcontext() if watched is None else watched.as_verb(verb)


class WatchedWire(Wire):
    """A wire with the failpoints of one process; a context variable has the verb of each task."""

    def __init__(self, wire: Wire, points: Failpoints) -> None:
        self._wire = wire
        self._points = points
        self._verb = points.verb
        self.named = points.named

    @contextlib.contextmanager
    def as_verb(self, verb: str) -> Iterator[None]:
        token = self._verb.set(verb)
        try:
            yield
        finally:
            self._verb.reset(token)

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        before = await self._identify(seconds)
        replies = await self._wire.calls(calls, seconds, patient=patient)
        await self._end(before, seconds)
        return replies

    async def command(self, *words: Word, seconds: float, patient: bool = True) -> Any:
        if words[0] not in CHANGES:
            return await self._wire.command(*words, seconds=seconds, patient=patient)
        before = await self._identify(seconds)
        reply = await self._wire.command(*words, seconds=seconds, patient=patient)
        await self._end(before, seconds)
        return reply

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        return await self._wire.each(*words, seconds=seconds)

    async def dsn_for(self, key: str, seconds: float) -> str:
        return await self._wire.dsn_for(key, seconds)

    async def close(self) -> None:
        await self._wire.close()

    async def _identify(self, seconds: float) -> int:
        point = f"{self._verb.get()}.before_commit"
        try:
            self._points.reach(point, "raise")
        except ResponseError as fault:
            # A temporary refusal: with a lasting one a starting worker would exit.
            raise ResponseError(f"MISCONF {fault}") from None
        with _cut_off():
            self._points.reach(point, "kill", "cut")
        return await self._changes(seconds)

    async def _end(self, before: int, seconds: float) -> None:
        if await self._changes(seconds) != before:
            with _cut_off():
                self._points.reach(f"{self._verb.get()}.after_commit", *ACTIONS)

    async def _changes(self, seconds: float) -> int:
        """The number of changes on all servers."""
        field = "rdb_changes_since_last_save:"
        infos = [info.decode() for info in await self._wire.each("INFO", "persistence", seconds=seconds)]
        return sum(int(line.removeprefix(field)) for info in infos for line in info.split() if line.startswith(field))


@contextlib.contextmanager
def _cut_off() -> Iterator[None]:
    """Raise an injected fault as a lost connection: the outcome is unknown."""
    try:
        yield
    except ResponseError as fault:
        raise Disconnected(str(fault)) from None
