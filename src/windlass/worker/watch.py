"""The watch over runners: passes on requests to stop, and frees what is stuck behind a loop that does not turn."""

import asyncio

from windlass.core.events import StoreTrouble
from windlass.core.outcome import hand_back
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.records import CancelRequest
from windlass.worker.child import Child
from windlass.worker.crew import Crew
from windlass.worker.link import Cancel
from windlass.worker.table import State

EVERY_SECONDS = 0.5
HANDSHAKE_SECONDS = 0.002


class Watch:
    """Looks at every runner twice a second."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._told: set[CancelRequest] = set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self._pass_on_cancels()
                for child in list(self._crew.children):
                    await self._free_stuck(child)
            except StoreUnavailable as error:
                self._crew.emit(StoreTrouble(doing="watching runners", problem=str(error)))

    async def _pass_on_cancels(self) -> None:
        serving, wanted = self._crew.serving, await self._crew.store.leases.cancels(self._crew.id)
        for cancel in wanted:
            if cancel not in self._told and cancel.runner in serving:
                serving[cancel.runner].link.say(Cancel(cancel.id, cancel.attempt))
        self._told = set(wanted)

    async def _free_stuck(self, child: Child) -> None:
        """Hand back prefetched jobs that the runner should have started long ago."""
        now = since_boot()
        late = [e for e in child.table.held() if e.state is State.PREFETCHED and now > e.start_by]
        if not late:
            return
        for entry in late:
            child.table.take(entry.index)
        # The runner may be starting one of them right now: by then it has either seen us, or is seen by us.
        await asyncio.sleep(HANDSHAKE_SECONDS)
        waiting = {(e.index, e.id, e.attempt) for e in child.table.held() if e.state is State.PREFETCHED}
        stuck = {(e.id, e.attempt) for e in late if (e.index, e.id, e.attempt) in waiting}
        if stuck and child.runner is not None:
            held = await self._crew.store.jobs.held(child.runner)
            back = [hand_back(job.id, job.queue, job.attempt) for job in held if (job.id, job.attempt) in stuck]
            await self._crew.store.jobs.settle(back)
