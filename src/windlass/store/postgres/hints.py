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

from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.postgres.access import Access, Server
from windlass.store.postgres.enqueue import Hint
from windlass.store.postgres.session import Session

QUIET_SECONDS = 0.02
SLACK_SECONDS = 0.005
"""Where jobs keep coming, the next one is there before this, and takes the hint along."""
PATIENCE_SECONDS = 2.0
PROBE = "?"
"""What a listener tells itself, to see whether it hears: the name of no queue."""
PROBE_SECONDS = 1.0


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
        self._queues: frozenset[str] | None = None
        self._heard = asyncio.Event()
        self.silence: str | None = None if server.address.notify else "the store's address says ?notify=off"
        """Why no notification is heard here; None: one was, or nobody has tried."""
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
        """The hint that goes with a hand-in; if it is not given, it is for `later`, as soon as that is committed."""
        if not self._server.address.notify:
            return Hint(self._channel, given=False)
        now = since_boot()
        if all(self._rest(queue, now) <= 0 for queue in queues):
            # Along with a hand-in it costs nothing, and says what was to be said later too.
            self._late.get(asyncio.get_running_loop(), set()).difference_update(queues)
            self._told.update(dict.fromkeys(queues, now))
            return Hint(self._channel, given=True)
        return Hint(self._channel, given=False)

    def _rest(self, queue: str, now: Micros) -> float:
        """Seconds for which there is to be silence about this queue."""
        return QUIET_SECONDS - (now - self._told.get(queue, 0)) / SECOND

    def always(self) -> Hint:
        """The hint of a caller's transaction: when that commits nobody here knows, so it is not held back."""
        return Hint(self._channel, given=self._server.address.notify)

    def announce(self) -> None:
        """Jobs have become pending, whoever did it and in whichever queue."""
        if self.next(("",)).given:
            self._start(self._notify([""]))
        else:
            self.later(("",))
        self.hear()

    def later(self, queues: Collection[str]) -> None:
        """Tell of these at the end of the silence: also when a hand-in that was to take the hint along has failed."""
        if not self._server.address.notify or not queues:
            return
        loop, now = asyncio.get_running_loop(), since_boot()
        late = self._late.setdefault(loop, set())
        if not late:
            rest = max(self._rest(queue, now) for queue in queues)
            loop.call_later(rest + SLACK_SECONDS, self._tell_late, loop)
        late.update(queues)

    def _tell_late(self, loop: asyncio.AbstractEventLoop) -> None:
        late, now = self._late.pop(loop, set()), since_boot()
        silent = [queue for queue in late if self._rest(queue, now) > 0]
        self._tell(late.difference(silent))
        if silent:  # told of since by another loop, or not as long ago as the one that this waited for
            self.later(silent)

    def _tell(self, queues: Collection[str]) -> None:
        if queues:  # else whoever closed the store has told of all
            self._told.update(dict.fromkeys(queues, since_boot()))
            self._start(self._notify(sorted(queues)))

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

    def attend(self, queues: Collection[str]) -> None:
        """What is told of other queues is not passed on."""
        self._queues = frozenset((*queues, ""))

    async def _listen(self, session: Session) -> None:
        """Listen, and see by a word to ourselves whether that works."""
        if session.pooled:
            self.silence = "a pooler is in between, which passes on none"
            return
        self._heard.clear()
        await session.connection.add_listener(self._channel, self._on_notice)
        await session.connection.fetch("SELECT pg_notify($1, $2)", self._channel, PROBE)
        self.silence = None
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._heard.wait()
        except TimeoutError:
            self.silence = "something between here and the server swallows them"
        self.hear()  # whatever was told while nobody listened

    def _on_notice(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if payload == PROBE:
            if pid == connection.get_server_pid():
                self._heard.set()
        elif self._queues is None or payload in self._queues:
            self.hear()

    async def close(self) -> None:
        """Say what is still to be said, and end."""
        loop = asyncio.get_running_loop()
        self._tell(self._late.pop(loop, set()))
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
