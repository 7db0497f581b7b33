"""The lease keeper: renews the leases of all runners of this worker, from a process that runs no user code."""

import asyncio
import os

from windlass.core.events import LeaseExpired, RunnerStarted, StoreFailed, StoreRecovered
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.records import LeaseRequest
from windlass.worker.channel import LeaseGranted
from windlass.worker.store_retry import describe_error, retry_until_done
from windlass.worker.supervisor.runner_process import Runner
from windlass.worker.supervisor.state import SupervisorState


class LeaseKeeper:
    """Opens leases and renews them."""

    def __init__(self, state: SupervisorState) -> None:
        self._state = state
        self.beat_at: Micros = 0
        """The last successful renewal."""

    async def open(self, child: Runner) -> None:
        """A lease under a new id: ids are never used twice, so a lapsed runner cannot come back as itself."""
        state, runner = self._state, new_runner_id(os.urandom)
        if child.runner is not None:
            state.emit(LeaseExpired(runner=child.runner))
        request = LeaseRequest(runner=runner, worker=state.id, length=state.config.lease)
        child.table.valid_until = 0
        sent = since_boot()
        await retry_until_done("opening a lease", lambda: state.store.leases.open(request), state.emit)
        child.table.lease += 1
        child.table.valid_until = sent + state.config.lease
        child.runner = runner
        child.channel.send(LeaseGranted(runner, child.table.lease))
        state.emit(RunnerStarted(runner=runner, pid=child.pid))

    async def replace(self, child: Runner, lost: str) -> None:
        """Replace a lost lease. The runner and we may both notice it: the second call does nothing."""
        async with child.leasing:
            if child.runner == lost and child in self._state.runners:
                await self.open(child)

    async def run(self) -> None:
        """Until cancelled."""
        beat, failing = self._state.config.beat / SECOND, False
        pause = beat
        while True:
            await asyncio.sleep(pause)
            try:
                await self._beat()
            except Exception as error:
                # Any error: without renewals every job of every runner would be interrupted.
                if not failing:
                    self._state.emit(StoreFailed(doing="renewing leases", problem=describe_error(error)))
                failing, pause = True, min(1.0, beat / 4)
            else:
                if failing:
                    self._state.emit(StoreRecovered(doing="renewing leases"))
                failing, pause = False, beat

    def live(self) -> bool:
        """The last good beat is no older than a lease; before the first one, we are starting."""
        config = self._state.config
        return self.beat_at == 0 or since_boot() - self.beat_at < config.lease + config.beat

    async def _beat(self) -> None:
        """Renew leases and nothing else: other writes may wait for a lock."""
        state, serving = self._state, self._state.serving
        # Validity counts from before the renewal was sent: however long the reply takes, we never think we hold
        # a lease that the store thinks is over.
        sent = since_boot()
        renewal = await state.store.leases.renew(state.id, tuple(serving), state.config.lease)
        self.beat_at = since_boot()
        for runner in renewal.kept:
            # Unless the runner has noticed its loss meanwhile and has another.
            if serving[runner].runner == runner:
                serving[runner].table.valid_until = sent + state.config.lease
        for runner in renewal.lost:
            await self.replace(serving[runner], runner)
