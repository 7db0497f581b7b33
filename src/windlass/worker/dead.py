"""Jobs that died in this runner, told to the user's `on_dead` hooks: after the fact, at most once, one at a time."""

import asyncio
from collections import deque

from windlass.client.app import App
from windlass.client.aside import with_values
from windlass.core.events import AttemptEnded, Emit, Event, StoreTrouble
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.worker.lifespan import Lifespan

HOOK_SECONDS = 10.0
"""How long one call may take: the next dead job waits for it."""


class DeadHooks:
    """Hears of settlements, which are durable by then, and calls the hooks beside the work."""

    def __init__(self, app: App, store: Store, lifespan: Lifespan, emit: Emit) -> None:
        self._app = app
        self._store = store
        self._lifespan = lifespan
        self._emit = emit
        self._waiting: deque[JobId] = deque()
        self._added = asyncio.Event()
        self.quiet = asyncio.Event()
        self.quiet.set()

    def listening(self, emit: Emit) -> Emit:
        """The same listener, with us beside it; just the listener if there are no hooks."""
        if not self._app.hooks.dead:
            return emit

        def both(event: Event) -> None:
            emit(event)
            if isinstance(event, AttemptEnded) and event.status is Status.DEAD:
                self._waiting.append(event.job)
                self.quiet.clear()
                self._added.set()

        return both

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._added.wait()
            await self._tell(self._waiting.popleft())
            if not self._waiting:
                self._added.clear()
                self.quiet.set()

    async def _tell(self, id_: JobId) -> None:
        try:
            job = (await self._store.operator.get([id_]))[0]
        except StoreUnavailable as error:
            self._emit(StoreTrouble(doing=f"telling the on_dead hooks of {id_}", problem=str(error)))
            return
        # Somebody may have retried or deleted it by now: then there is nothing left to tell.
        if job is not None and job.status is Status.DEAD:
            told = await with_values(self._app.offload(), job)
            for hook in self._app.hooks.dead:
                end = asyncio.get_running_loop().time() + HOOK_SECONDS
                await self._lifespan.attempt(hook, told, self._app.state, end=end, job=id_)
