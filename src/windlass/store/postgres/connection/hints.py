"""Wake-up hints by NOTIFY. They may be lost; polling is always enough.

Each notification takes a lock that serializes commits, and wakes every listener, so one per job would be too slow.
Enqueues of a process carry hints while its token bucket has tokens; later hints are collected until there is a token
again. Only supervisors listen, on the connection that is not for leases, and they wake their runners.
"""

import asyncio
import contextlib
from collections.abc import Collection, Coroutine
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from windlass.core.flow.rate import full
from windlass.core.hints import HINT_RATE, spend_hint
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.server import Server
from windlass.store.postgres.connection.session import Session
from windlass.store.waits import HintWaiters

SLACK_SECONDS = 0.001
"""Delayed hints wait this long in addition: while jobs keep coming, the next enqueue carries them."""
PATIENCE_SECONDS = 2.0
PROBE = "?"
"""The test message that a listener sends to itself; no queue has this name."""
PROBE_SECONDS = 1.0
NOT_ACCEPTED = "the server refuses LISTEN or NOTIFY"


class Hint:
    """The notification of an enqueue: its channel, and whether the statement sends it (`given`)."""

    def __init__(self, channel: str, given: bool) -> None:
        self.channel = channel
        self.given = given


class Hints(HintWaiters):
    """The hints that one process sends and receives."""

    def __init__(self, server: Server, *, listening: bool) -> None:
        super().__init__()
        self._server = server
        self._channel = f"windlass.{server.address.schema}"
        self._token_bucket = full(HINT_RATE, since_boot())
        self._delayed: WeakKeyDictionary[asyncio.AbstractEventLoop, set[str]] = WeakKeyDictionary()
        self._timed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        """Loops with a timer for their delayed hints."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._queues: frozenset[str] | None = None
        self._test_arrived = asyncio.Event()
        self.outage: str | None = None if server.notifies else why_no_hints(server.address)
        """Why no notification arrives here; None if one did, or none was tried."""
        server.on_loop_end = self._on_loop_end
        if listening and server.notifies:
            server.on_open = self._listen

    def next(self, queues: Collection[str], loop: asyncio.AbstractEventLoop | None = None) -> Hint:
        """The hint of an enqueue; if it is not `given`, call `later` after the commit. A thread without a loop passes
        the loop of its session."""
        if not self._server.notifies:
            return Hint(self._channel, given=False)
        if self._spend():
            return Hint(self._channel, given=False)
        # A hint that the enqueue carries costs nothing, and does for delayed hints of the same queues.
        self._delayed.get(loop or asyncio.get_running_loop(), set()).difference_update(queues)
        return Hint(self._channel, given=True)

    def _spend(self) -> float:
        """Spend a token; returns zero, or the seconds until there is one."""
        self._token_bucket, wait = spend_hint(self._token_bucket, since_boot())
        return wait / SECOND

    def always(self) -> Hint:
        """The hint of an enqueue in a caller's transaction: never delayed, because we do not see the commit."""
        return Hint(self._channel, given=self._server.notifies)

    def announce(self) -> None:
        """Notify all workers: jobs became pending in some queue."""
        if self.next(("",)).given:
            self._start(self._notify([""]))
        else:
            self.later(("",))
        self.notify()

    def later(self, queues: Collection[str]) -> None:
        """Notify these queues as soon as there is a token."""
        if not self._server.notifies or not queues:
            return
        loop = asyncio.get_running_loop()
        self._delayed.setdefault(loop, set()).update(queues)
        if loop not in self._timed:
            self._send_in(0.0, loop)

    def later_on(self, loop: asyncio.AbstractEventLoop, queues: Collection[str]) -> None:
        """The same from a thread. It wakes the loop only if no timer will send the hints anyway."""
        if not self._server.notifies:
            return
        delayed = self._delayed.setdefault(loop, set())
        delayed.update(queues)
        # The loop may have sent that set just before the queues were added to it.
        if loop not in self._timed or self._delayed.get(loop) is not delayed:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.later, queues)

    def _send_in(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self._timed.add(loop)
        loop.call_later(seconds + SLACK_SECONDS, self._send_delayed, loop)

    def _send_delayed(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send the delayed hints of a loop if there is a token, else try again when there is one."""
        self._timed.discard(loop)
        if not self._delayed.get(loop):
            return  # an enqueue has carried them
        if wait := self._spend():
            self._send_in(wait, loop)
        else:
            self._send(self._delayed.pop(loop))

    def _send(self, queues: Collection[str]) -> None:
        if queues:
            self._start(self._notify(sorted(queues)))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # In an empty context, so that the hint does not count as part of the verb that caused it.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        # A loop that stops at once loses a hint in flight, which does no harm.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self, queues: list[str]) -> None:
        with contextlib.suppress(StoreUnavailable):  # a lost hint; waiters poll anyway
            access = Access(self._server, PATIENCE_SECONDS)
            await access.once(lambda db: db.rows("notify", {"channel": self._channel, "queues": queues}))

    def subscribe(self, queues: Collection[str]) -> None:
        """Ignore hints for other queues."""
        self._queues = frozenset((*queues, ""))

    async def _listen(self, session: Session) -> None:
        """Listen, and send a message to this connection to test whether that works."""
        if session.pooled:
            self.outage = "there is a pooler, which passes on no notifications"
            return
        if not self._server.notifies:
            self.outage = NOT_ACCEPTED
            return
        self._test_arrived.clear()
        await session.connection.add_listener(self._channel, self._on_notice)
        await session.connection.fetch("SELECT pg_notify($1, $2)", self._channel, PROBE)
        self.outage = None
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._test_arrived.wait()
        except TimeoutError:
            self.outage = "something between here and the server drops notifications"
        self.notify()  # for hints that were sent before

    def _on_notice(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if payload == PROBE:
            if pid == connection.get_server_pid():
                self._test_arrived.set()
        elif self._queues is None or payload in self._queues:
            self.notify()

    async def close(self) -> None:
        """Send the delayed hints of this loop, and wait for those in flight."""
        loop = asyncio.get_running_loop()
        self._send(self._delayed.pop(loop, set()))
        if tasks := [task for task in self._tasks if task.get_loop() is loop]:
            await asyncio.wait(tasks, timeout=PATIENCE_SECONDS)
        self.notify()

    async def _on_loop_end(self) -> None:
        """At the end of the loop, send its delayed hints."""
        if queues := sorted(self._delayed.pop(asyncio.get_running_loop(), ())):
            await self._notify(queues)


def why_no_hints(address: Address) -> str:
    """Why hints are off."""
    if address.profile.name:
        return "hints are off on YugabyteDB, unless the store's address says ?notify=on"
    return "the store's address says ?notify=off"
