"""After a runner's process has ended: kill its leftover processes, put back its jobs, emit how it ended."""

import asyncio

from windlass.coordinator.duties import report_rescued
from windlass.core.events import RunnerEnded
from windlass.observe.process import job_figures
from windlass.store.records import RunnerEnd, Settled
from windlass.worker.runner.meters import count_ended
from windlass.worker.runner.settler import attempt_ended
from windlass.worker.shared_table import State
from windlass.worker.store_retry import FailureReports, describe_error, retry_until_done
from windlass.worker.supervisor.runner_process import Runner, RunnerProcess
from windlass.worker.supervisor.state import SupervisorState

IDLE_SECONDS = 2.0
"""Max time a stopping worker tries to end the lease of an idle runner, which also expires by itself."""

LEFTOVERS = "ending the processes of a runner's handlers"
LEFTOVER_PAUSE = 1.0


class Removal:
    """Removes dead runners of one worker."""

    def __init__(self, state: SupervisorState, stopping: asyncio.Event) -> None:
        self._state = state
        self._stopping = stopping
        self._failures = FailureReports(state.emit)
        self.unanswered = False
        """Whether the store did not answer the end of a lease."""

    async def remove(self, child: RunnerProcess, *, announce: bool) -> None:
        """Put back the jobs that it held; `announce`: emit how it ended."""
        state, expected = self._state, child.stopping or child.said_goodbye or child.hung
        if announce:
            runner = child.runner or "(without a lease)"
            state.emit(RunnerEnded(runner=runner, pid=child.pid, status=child.ending(), expected=expected))
        await self._end_leftovers(child)
        if child.runner is not None:
            await self._put_back(child, child.runner, crashed=not expected)
        child.close()

    async def _end_leftovers(self, child: RunnerProcess) -> None:
        """End leftover processes before the jobs are put back; repeated while no thread or descriptor is
        available.
        """
        while True:
            try:
                await child.end_leftovers()
            except (OSError, RuntimeError) as error:
                self._failures.failed(LEFTOVERS, describe_error(error))
                await asyncio.sleep(LEFTOVER_PAUSE)
            else:
                self._failures.succeeded(LEFTOVERS)
                return

    async def _put_back(self, child: RunnerProcess, runner: str, *, crashed: bool) -> None:
        """Put jobs back, however long the store is away; a stopping worker does not wait for the lease of an idle
        runner.
        """
        held = bool(child.overdue) or any(True for _ in child.table.held())
        ending = asyncio.create_task(end_lease(self._state, child, runner, crashed=crashed))
        try:
            if not held:
                await self._until_stopping(ending)
                await asyncio.wait([ending], timeout=IDLE_SECONDS)
            self.unanswered = not held and not ending.done()
            if not self.unanswered:
                await ending
        finally:
            ending.cancel()

    async def _until_stopping(self, ending: asyncio.Task[None]) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([ending, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()


async def end_lease(state: SupervisorState, child: Runner, runner: str, *, crashed: bool) -> None:
    """Put back the jobs that a runner held when it ended, however long the store is away."""
    await _settle_overdue(state, child)
    ended = RunnerEnd(
        runner=runner,
        started=child.attempts(State.STARTED),
        returned=child.attempts(State.ENDED),
        crashed=crashed,
    )
    leases, emit = state.store.leases, state.emit
    rescued = await retry_until_done("putting back jobs", lambda: leases.end(ended), emit)
    await report_rescued(state.store, rescued, emit)


async def _settle_overdue(state: SupervisorState, child: Runner) -> None:
    """Settle jobs that took too long as failed, now that their runner has ended; the settlement of an ended one
    is stale.
    """
    if child.overdue:
        jobs, overdue = state.store.jobs, [each.settlement for each in child.overdue]
        answers = await retry_until_done("settling overdue jobs", lambda: jobs.settle(overdue), state.emit)
        for each, answer in zip(child.overdue, answers, strict=True):
            if answer is Settled.SETTLED:
                if (figures := job_figures(through_server=bool(state.config.server))) is not None:
                    count_ended(figures, [(each.job_type, each.settlement)])
                state.emit(attempt_ended(each.settlement, each.job_type, child.runner or "", None))
