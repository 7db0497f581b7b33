"""Claims that wait for a job: one poll of the store serves all of them."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextvars import Context, copy_context
from functools import partial
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request

from windlass.client.app import App
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract import Store

CHECK_SECONDS = 1.0
"""Between two checks of the tokens of waiting claims."""
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


class Waiter(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A claim that waits. It does nothing itself meanwhile: what it needs is done for all waiting claims at once."""

    want: Want
    request: Request
    credential: Hashable
    """Claims of the same credential are checked by one call of `recheck`."""
    recheck: Callable[[], Awaitable[object]]
    """Raises an error unless the caller is still allowed."""
    is_taken: Callable[[], bool]
    """Whether the same claim has got jobs on another connection."""
    context: Context = msgspec.field(default_factory=copy_context)
    """Of its request: the app around a mounted server may read its caller there."""
    ended: asyncio.Future[bool] = msgspec.field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Set when the wait ends: whether a claim may find a job now."""

    def end(self, *, woken: bool) -> None:
        """End the wait."""
        if not self.ended.done():
            self.ended.set_result(woken)

    async def watch(self) -> None:
        """End the wait when the caller has disconnected."""
        if (await self.request.receive())["type"] == "http.disconnect":
            self.request._is_disconnected = True  # some servers say it once, and the claim asks again
            self.end(woken=False)


class LongPolls:
    """The waiting claims of one server."""

    def __init__(self, app: App, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._is_stopping = is_stopping
        self._waiting: dict[Want, dict[Waiter, None]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._checks: dict[Hashable, asyncio.Task[None]] = {}
        """By credential, the checks in progress: a slow one does not delay the others."""
        self._admitted = 0
        self._subscribed: tuple[str, ...] = ()

    @property
    def stopping(self) -> bool:
        """Whether the server is stopping: then waiting claims are answered."""
        return self._is_stopping()

    async def wait(self, waiter: Waiter, seconds: float) -> bool:
        """Wait until a claim may find a job, at most for this time; whether it may.

        It ends early if the caller has disconnected, or is perhaps not allowed any more.
        """
        if self.stopping:
            return True
        self._waiting.setdefault(waiter.want, {})[waiter] = None
        self._looking = _running(self._looking, self._look)
        self._checking = _running(self._checking, self._check)
        watching = asyncio.create_task(waiter.watch())
        try:
            async with asyncio.timeout(seconds):
                return await waiter.ended
        except TimeoutError:
            return False
        finally:
            self._leave(waiter)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def stop(self) -> None:
        """Answer every waiting claim."""
        self._wake_all()
        tasks = [each for each in (self._looking, self._checking, *self._checks.values()) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _leave(self, waiter: Waiter) -> None:
        waiters = self._waiting.get(waiter.want, {})
        waiters.pop(waiter, None)
        if not waiters:
            self._waiting.pop(waiter.want, None)

    async def _check(self) -> None:
        """Check the tokens while any claim waits; after an error its claims end their wait and check it."""
        while self._waiting:
            await asyncio.sleep(CHECK_SECONDS)
            waiting = [waiter for waiters in self._waiting.values() for waiter in waiters]
            if self.stopping:  # the poll may be waiting for a store that does not answer
                for waiter in waiting:
                    waiter.end(woken=False)
                return
            self._looking = _running(self._looking, self._look)
            alike: defaultdict[Hashable, list[Waiter]] = defaultdict(list)
            for waiter in waiting:
                if waiter.is_taken():
                    waiter.end(woken=True)
                else:
                    alike[waiter.credential].append(waiter)
            for credential in alike.keys() - self._checks.keys():
                context = alike[credential][0].context.copy()
                task = asyncio.create_task(_recheck(alike[credential]), context=context)
                self._checks[credential] = task
                task.add_done_callback(partial(self._forget, credential))

    def _forget(self, credential: Hashable, _: "asyncio.Task[None]") -> None:
        del self._checks[credential]

    async def _look(self) -> None:
        """Poll while any claim waits. If this fails otherwise than by an outage, the next check starts it again."""
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
        chosen = [each for each in self._waiting.get(want, {}) if not each.ended.done()][:most]
        for waiter in chosen:
            waiter.end(woken=True)
        return bool(chosen)


def _running(task: "asyncio.Task[None] | None", run: Callable[[], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
    return asyncio.create_task(run()) if task is None or task.done() else task


async def _recheck(waiters: list[Waiter]) -> None:
    """Check the credential of these claims; after any error each claim checks it, and answers with its error."""
    try:
        await waiters[0].recheck()
    except Exception:
        for waiter in waiters:
            waiter.end(woken=False)
