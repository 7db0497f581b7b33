"""Claims that wait for a job: one poll of the store serves all of them."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from windlass.client.app import App
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract import Store

MIN_PAUSE = 0.05
MAX_PAUSE = 0.25
"""Seconds between two polls without a hint."""
WOKEN = 8
"""Claims that one poll wakes, the longest waiting first: more would probably find nothing."""
ADMIT_EVERY: Micros = SECOND
MAX_ADMITTED = 500


class Want(NamedTuple):
    """What a claim waits for."""

    queues: tuple[str, ...]
    types: tuple[str, ...]


class LongPolls:
    """The waiting claims of one server."""

    def __init__(self, app: App, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._is_stopping = is_stopping
        self._waiting: dict[Want, deque[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._admitted = 0
        self._subscribed: tuple[str, ...] = ()

    @property
    def stopping(self) -> bool:
        """Whether the server is stopping: then waiting claims are answered."""
        return self._is_stopping()

    async def wait(self, want: Want, seconds: float) -> bool:
        """Wait until a claim may find a job, at most for this time; whether it may."""
        if self.stopping:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(want, deque()).append(waiter)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter
        finally:
            self._leave(want, waiter)
        return waiter.done() and not waiter.cancelled()

    async def stop(self) -> None:
        """Answer every waiting claim."""
        self._wake_all()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _leave(self, want: Want, waiter: "asyncio.Future[None]") -> None:
        waiters = self._waiting.get(want)
        if waiters is not None:
            with contextlib.suppress(ValueError):
                waiters.remove(waiter)
            if not waiters:
                del self._waiting[want]

    async def _look(self) -> None:
        """Poll while any claim waits. If this fails otherwise than by an outage, the next wait starts it again."""
        while self._waiting and not self.stopping:
            woken = False
            try:
                store = await self._app._ready()
                cursor = store.signals.cursor()
                woken = await self._wake_some(store)
            except StoreUnavailable:
                await asyncio.sleep(MAX_PAUSE)
                continue
            if woken:
                await asyncio.sleep(MIN_PAUSE)
            else:
                await store.signals.wait(cursor, MAX_PAUSE)
        self._wake_all()

    async def _wake_some(self, store: Store) -> bool:
        wants = list(self._waiting)
        together = Want(
            tuple(sorted({queue for want in wants for queue in want.queues})),
            tuple(sorted({type_ for want in wants for type_ in want.types})),
        )
        if together.queues != self._subscribed:
            self._subscribed = together.queues
            store.signals.subscribe(together.queues)
        if since_boot() - self._admitted > ADMIT_EVERY:
            # Due jobs are admitted without a coordinator too.
            self._admitted = since_boot()
            await store.jobs.admit(MAX_ADMITTED, together.queues)
        if not await store.signals.has_work(together.queues, together.types):
            return False
        woken = False
        for want in wants:
            if len(wants) == 1 or await store.signals.has_work(want.queues, want.types):
                woken |= self._wake(want, WOKEN)
        return woken

    def _wake_all(self) -> None:
        for want in list(self._waiting):
            self._wake(want, len(self._waiting[want]))

    def _wake(self, want: Want, most: int) -> bool:
        waiters = self._waiting.get(want, deque())
        chosen = [waiter for waiter in waiters if not waiter.done()][:most]
        for waiter in chosen:
            waiter.set_result(None)
        return bool(chosen)
