"""The lease keeper: renews the leases of all runners of this worker, from a process that runs no user code."""

import asyncio
import os

from windlass.core.events import LeaseExpired, RunnerStarted, StoreBack, StoreTrouble
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.records import LeaseRequest, Note
from windlass.worker.child import Child
from windlass.worker.crew import Crew
from windlass.worker.holdings import PATIENCE
from windlass.worker.link import Go
from windlass.worker.patience import persist
from windlass.worker.registration import Registration
from windlass.worker.table import State


class LeaseKeeper:
    """Opens leases, and beats."""

    def __init__(self, crew: Crew, registration: Registration) -> None:
        self._crew = crew
        self._registration = registration
        self.beat_at: Micros = 0
        """The last good beat."""

    async def open(self, child: Child) -> None:
        """A lease under a new id: ids are never used twice, so a lapsed runner cannot come back as itself."""
        crew, runner = self._crew, new_runner_id(os.urandom)
        if child.runner is not None:
            crew.emit(LeaseExpired(runner=child.runner))
        request = LeaseRequest(runner=runner, worker=crew.id, length=crew.config.lease)
        child.table.valid_until = 0
        sent = since_boot()
        await persist("opening a lease", lambda: crew.store.leases.open(request), crew.emit)
        child.table.lease += 1
        child.table.valid_until = sent + crew.config.lease
        child.runner = runner
        child.link.say(Go(runner, child.table.lease))
        crew.emit(RunnerStarted(runner=runner, pid=child.pid))

    async def replace(self, child: Child, lost: str) -> None:
        """A new lease for one that is lost. We and the runner may both notice: the second finds it done."""
        async with child.leasing:
            if child.runner == lost and child in self._crew.children:
                await self.open(child)

    async def run(self) -> None:
        """Until cancelled."""
        beat, troubled = self._crew.config.beat / SECOND, False
        pause = beat
        while True:
            await asyncio.sleep(pause)
            try:
                await self._beat()
            except StoreUnavailable as error:
                if not troubled:
                    self._crew.emit(StoreTrouble(doing="renewing leases", problem=str(error)))
                troubled, pause = True, min(1.0, beat / 4)
            else:
                if troubled:
                    self._crew.emit(StoreBack(doing="renewing leases"))
                troubled, pause = False, beat

    def live(self) -> bool:
        """The last good beat is no older than a lease; before the first one, we are starting."""
        config = self._crew.config
        return self.beat_at == 0 or since_boot() - self.beat_at < config.lease + config.beat

    async def _beat(self) -> None:
        crew, serving = self._crew, self._crew.serving
        # Validity counts from before the renewal was sent: however long the reply takes, we never think we hold
        # a lease that the store thinks is over.
        sent = since_boot()
        renewal, _, _ = await asyncio.gather(
            crew.store.leases.renew(crew.id, tuple(serving), crew.config.lease),
            crew.store.workers.beat(self._registration.info()),
            crew.store.jobs.note(_started(serving)),
        )
        self.beat_at = since_boot()
        for runner in renewal.kept:
            # Unless the runner has found out meanwhile that it is gone, and has another.
            if serving[runner].runner == runner:
                serving[runner].table.valid_until = sent + crew.config.lease
        for runner in renewal.lost:
            await self.replace(serving[runner], runner)


def _started(serving: dict[str, Child]) -> list[Note]:
    """Jobs that have been running for a while: let the store know since when."""
    notes = []
    for child in serving.values():
        started = [entry for entry in child.table.held() if entry.state is State.STARTED]
        for entry in started:
            if (entry.id, entry.attempt) not in child.noted:
                claimed_on = entry.start_by - PATIENCE
                after = max(0, entry.since - claimed_on)
                notes.append(Note(id=entry.id, queue="", attempt=entry.attempt, started_after=after))
        child.noted = {(entry.id, entry.attempt) for entry in started}
    return notes
