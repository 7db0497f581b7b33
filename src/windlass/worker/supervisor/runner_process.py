"""A runner from its supervisor's side: a process, a channel to it, and the shared table that outlives it."""

import asyncio
import contextlib
import secrets
import socket
import sys

import msgspec

from windlass.core.events import Emit
from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.observe.figures import Figures
from windlass.store.clock import since_boot
from windlass.worker.channel import Channel, Overdue, Stop
from windlass.worker.config import WorkerConfig
from windlass.worker.processes import MARK, describe_exit, kill_marked
from windlass.worker.runner.process import RunnerConfig, table_size
from windlass.worker.shared_table import SharedTable, State
from windlass.worker.stacks import Stacks
from windlass.worker.store_retry import FailureReports

MIN_PAUSE, MAX_PAUSE = 0.1, 5.0
STABLE_AFTER = 10 * SECOND
"""A runner that ran this long is replaced at once; after a shorter run the next start waits."""
FAILING_AFTER = 60 * SECOND
"""A worker is not ready if a runner fails for this long for another reason than the store."""
STARTING = "starting a runner"


class Runner:
    """A runner in any process: its lease, the channel to it, and the table of its held jobs."""

    def __init__(self, pid: int, channel: Channel, table: SharedTable) -> None:
        self.pid = pid
        self.channel = channel
        self.table = table
        self.runner: str | None = None
        """Its id, once it has a lease."""
        self.leasing = asyncio.Lock()
        self.overdue: list[Overdue] = []
        """Settlements of jobs whose handlers do not end, to be written after the end of this runner."""
        self.noted: set[tuple[JobId, int]] = set()

    def attempts(self, state: State) -> frozenset[tuple[JobId, int]]:
        """The attempts in this state."""
        return frozenset((entry.id, entry.attempt) for entry in self.table.held() if entry.state is state)


class RunnerProcess(Runner):
    """One runner process."""

    def __init__(
        self, process: asyncio.subprocess.Process, channel: Channel, table: SharedTable, stacks: Stacks, mark: str
    ) -> None:
        super().__init__(process.pid, channel, table)
        self.process = process
        self.figures: Figures | None = None
        """Its metrics, if they are exposed."""
        self._mark = mark
        self.stacks = stacks
        self.hung = False
        """Whether it was killed because its event loop hung."""
        self.warned_on: Micros = 0
        self.stopping = False
        self.said_goodbye = False
        self.problem: str | None = None
        self.lacks_store = False
        """Whether it could not start because the store is away."""

    @classmethod
    async def start(cls, config: WorkerConfig) -> "RunnerProcess":
        """Start a new process (exec, not fork), with its end of the channel and the table.

        OSError: no process or descriptor is available; the failed start leaves nothing behind.
        """
        mark = secrets.token_hex(8)
        with contextlib.ExitStack() as made:
            ours, theirs = socket.socketpair()
            made.callback(ours.close)
            with theirs:
                table = SharedTable.create(table_size(config))
                made.callback(table.close)
                stacks = Stacks.create()
                made.callback(stacks.close)
                figures = None if config.health is None else Figures.create_shared()
                if figures is not None:
                    made.callback(figures.close)
                channel = await Channel.over(ours)
                made.callback(channel.close)
                runner_config = RunnerConfig(
                    worker=config,
                    socket=theirs.fileno(),
                    table=table.descriptor,
                    stacks=stacks.descriptor,
                    figures=None if figures is None else figures.descriptor,
                    mark=mark,
                )
                shared = (theirs.fileno(), table.descriptor, stacks.descriptor, runner_config.figures)
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "windlass.worker.runner.process",
                    msgspec.json.encode(runner_config).decode(),
                    pass_fds=tuple(each for each in shared if each is not None),
                    start_new_session=True,
                )
            made.pop_all()
        child = cls(process, channel, table, stacks, mark)
        child.figures = figures
        return child

    @property
    def gone(self) -> bool:
        """Whether the process has ended; its pid may be reused."""
        return self.process.returncode is not None

    def stop(self, grace: Micros) -> None:
        """Ask it to end; its remaining jobs are requeued, not crashed."""
        self.stopping = True
        self.channel.send(Stop(grace))

    def kill(self) -> None:
        """End it now."""
        if not self.gone:
            self.process.kill()

    async def end_leftovers(self) -> None:
        """After its end, end the processes of its handlers and their descendants."""
        await asyncio.to_thread(kill_marked, f"{MARK}={self._mark}.")

    def ending(self) -> str:
        """How the process ended, in words."""
        code = self.process.returncode
        if self.problem is not None:
            return f"it could not start: {self.problem}"
        if code is None:
            return "still running"
        return describe_exit(code)

    def close(self) -> None:
        """Close its channel, table and file of stacks."""
        self.channel.close()
        self.table.close()
        self.stacks.close()


class Restarts:
    """Starts one runner again and again."""

    def __init__(self, config: WorkerConfig, stopping: asyncio.Event, emit: Emit) -> None:
        self._config = config
        self._stopping = stopping
        self._failures = FailureReports(emit)
        self._started: Micros = 0
        self._failing: Micros = 0
        """Since when no runner works; 0 while one works."""
        self._pause = 0.0
        self._child: RunnerProcess | None = None

    @property
    def failing(self) -> bool:
        """Whether the runner cannot be kept alive, for another reason than the store."""
        return self._failing != 0 and since_boot() - self._failing > FAILING_AFTER and not self._works

    @property
    def _works(self) -> bool:
        """Whether the runner has a lease, and had time to fail."""
        leased = self._child is not None and self._child.runner is not None
        return leased and since_boot() - self._started > STABLE_AFTER

    async def start(self) -> RunnerProcess | None:
        """A new runner, as soon as the system has a process and descriptors for it; None if the worker stops
        first.
        """
        while not self._stopping.is_set():
            self._started, self._child = since_boot(), None
            try:
                self._child = await RunnerProcess.start(self._config)
            except OSError as error:
                self._failures.failed(STARTING, str(error))
                await self.pause()
            else:
                self._failures.succeeded(STARTING)
                return self._child
        return None

    async def pause(self) -> None:
        """Wait before the next start, after a runner has ended or could not be started."""
        old = since_boot() - self._started > STABLE_AFTER
        lacks_store = self._child is not None and self._child.lacks_store
        self._failing = 0 if self._works or lacks_store else self._failing or self._started
        self._child = None
        self._pause = 0.0 if old else min(MAX_PAUSE, max(MIN_PAUSE, self._pause * 2))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._stopping.wait()
