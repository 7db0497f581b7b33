"""Wake-up hints by NOTIFY. They may be lost; polling is always enough.

A process that hands jobs in tells of it at once, and then at most every 20 milliseconds per queue: what comes in
between is told at the end of that time. Every notification takes a lock that all commits with one take in turn, and
wakes every listener, so one for each job would be a brake. Only supervisors listen, on the one connection that they
have, and pass on to their runners what they hear.
"""

import asyncio
import contextlib
from collections.abc import Collection, Coroutine
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.postgres.access import Access, Server
from windlass.store.postgres.enqueue import Hint
from windlass.store.postgres.session import Session

QUIET_SECONDS = 0.02
PATIENCE_SECONDS = 2.0


class Hints:
    """What one process tells and hears."""

    def __init__(self, server: Server, *, listening: bool) -> None:
        self._server = server
        self._channel = f"windlass.{server.address.schema}"
        self._mark = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._told: dict[str, int] = {}
        self._late: WeakKeyDictionary[asyncio.AbstractEventLoop, set[str]] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self.heard = False
        """Whether a notification has ever come: through a pooler none does."""
        server.take_leave = self._take_leave
        if listening and server.address.notify:
            server.greet = self._listen

    def mark(self) -> int:
        """Where things stand."""
        return self._mark

    def hear(self) -> None:
        """Something may have changed."""
        self._mark += 1
        for waiter in list(self._waiting):
            with contextlib.suppress(RuntimeError):  # its loop is over, and nobody waits there any more
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    async def wait(self, mark: int, seconds: float) -> bool:
        """Until something was heard since the mark, or the time is over: whether it was."""
        if self._mark != mark:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiting.discard(waiter)
        return self._mark != mark

    def next(self, queues: Collection[str]) -> Hint:
        """The hint that goes with a hand-in: now, or a little later for all that come until then."""
        if not self._server.address.notify:
            return Hint(self._channel, given=False)
        now = since_boot()
        early = [queue for queue in queues if now - self._told.get(queue, 0) < QUIET_SECONDS * 1_000_000]
        if not early:
            self._told.update(dict.fromkeys(queues, now))
            return Hint(self._channel, given=True)
        self._tell_later(queues)
        return Hint(self._channel, given=False)

    def always(self) -> Hint:
        """The hint of a caller's transaction: when that commits nobody here knows, so it is not held back."""
        return Hint(self._channel, given=self._server.address.notify)

    def announce(self) -> None:
        """Jobs have become pending, whoever did it and in whichever queue."""
        if self.next(("",)).given:
            self._start(self._notify([""]))
        self.hear()

    def _tell_later(self, queues: Collection[str]) -> None:
        loop = asyncio.get_running_loop()
        late = self._late.setdefault(loop, set())
        if not late:
            loop.call_later(QUIET_SECONDS, self._tell, loop)
        late.update(queues)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        queues = sorted(self._late.pop(loop, ()))
        if not queues:
            return  # told by whoever closed the store
        self._told.update(dict.fromkeys(queues, since_boot()))
        self._start(self._notify(queues))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # In a context of its own: a hint is no part of the verb that gave rise to it.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        # A loop that just stops takes a hint with it that is on its way: that is no harm, and nothing to tell of.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self, queues: list[str]) -> None:
        with contextlib.suppress(StoreUnavailable):  # a hint lost; who waits polls anyway
            access = Access(self._server, PATIENCE_SECONDS)
            await access.once(lambda db: db.rows("notify", {"channel": self._channel, "queues": queues}))

    async def _listen(self, session: Session) -> None:
        if not session.pooled:
            await session.connection.add_listener(self._channel, self._on_notice)

    def _on_notice(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        self.heard = True
        self.hear()

    async def close(self) -> None:
        """Say what is still to be said, and end."""
        loop = asyncio.get_running_loop()
        if self._late.get(loop):
            self._tell(loop)
        if tasks := [task for task in self._tasks if task.get_loop() is loop]:
            await asyncio.wait(tasks, timeout=PATIENCE_SECONDS)
        self.hear()

    async def _take_leave(self) -> None:
        """This loop ends, and with it what was to be told a little later."""
        if queues := sorted(self._late.pop(asyncio.get_running_loop(), ())):
            await self._notify(queues)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
