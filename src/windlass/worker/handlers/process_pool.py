"""The handler processes of a runner: for tasks with `run_in="process"`, and for jobs that may have ended a runner."""

import asyncio
from collections.abc import Callable

from windlass.core.events import Emit, silent
from windlass.core.jobs.job import JobError
from windlass.core.jobs.outcome import Decided, NotRun, Outcome, Raised, is_suspect
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.text import cut, printable
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.attempt import halted
from windlass.worker.handlers.process import (
    OUT_OF_RESOURCES,
    OUT_OF_RESOURCES_PAUSE,
    HandlerProcess,
    HandlerProcessFailed,
)
from windlass.worker.handlers.work import Work
from windlass.worker.store_retry import FailureReports, describe_error

MAX_PROBLEM_LENGTH = 4_000
STARTING = "starting a process for a handler"


class HandlerProcessPool:
    """Handler processes that wait for their next job, and busy ones."""

    def __init__(self, config: WorkerConfig, mark: str = "", *, stop_seconds: float = 0, emit: Emit = silent) -> None:
        self._config = config
        self._failures = FailureReports(emit)
        self._mark = mark
        self._stop_seconds = stop_seconds
        self._idle: list[HandlerProcess] = []
        self._busy: dict[Work, HandlerProcess] = {}

    async def run(self, work: Work, retry: StoredPolicy, begin: Callable[[Work], None]) -> Outcome:
        """One attempt in a process; a suspect gets one that no other job uses.

        `begin` is called when the handler starts: its time does not count before that.
        """
        process, outcome = None, None
        try:
            process = self._busy[work] = self._idle_process(work) or await HandlerProcess.start(
                self._config, self._mark
            )
            while not await process.load():
                process = self._busy[work] = await HandlerProcess.start(self._config, self._mark)
            self._failures.succeeded(STARTING)
            outcome = halted(work)
            if outcome is None:
                begin(work)
                outcome = await process.run(work, retry)
            return outcome
        except HandlerProcessFailed as error:
            # Not caused by the job: retried like any failure.
            problem = cut(printable(f"no process could be started: {error}"), MAX_PROBLEM_LENGTH)
            return halted(work) or Raised(error, JobError("HandlerProcessFailed", problem))
        except OUT_OF_RESOURCES as error:
            self._failures.failed(STARTING, describe_error(error))
            await asyncio.sleep(OUT_OF_RESOURCES_PAUSE)
            return halted(work) or NotRun()
        finally:
            self._busy.pop(work, None)
            if process is not None:
                await self._put_away(process, again=isinstance(outcome, Decided) and not is_suspect(work.claimed))

    async def _put_away(self, process: HandlerProcess, *, again: bool) -> None:
        if again and process.fit(self._config):
            self._idle.append(process)
        else:
            await process.end(self._stop_seconds)

    async def close(self) -> None:
        """Let those that wait for a job stop by themselves."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(process.end(self._stop_seconds) for process in idle))

    def request_cancel(self, work: Work) -> None:
        """Tell a handler that its cancellation was requested."""
        if work in self._busy:
            self._busy[work].request_cancel()

    def kill(self, work: Work) -> None:
        """End the process of one job."""
        if work in self._busy:
            self._busy[work].kill()

    def kill_all(self) -> None:
        """End every process."""
        for process in [*self._idle, *self._busy.values()]:
            process.kill()

    def _idle_process(self, work: Work) -> HandlerProcess | None:
        """A process that was used before and still runs."""
        while self._idle and not is_suspect(work.claimed):
            process = self._idle.pop()
            if process.alive:
                return process
        return None
