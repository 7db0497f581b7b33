"""A runner as its supervisor sees it: a process, a line to it, and the table that outlives it."""

import asyncio
import signal
import socket
import sys

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.worker.config import WorkerConfig
from windlass.worker.link import Link, Overdue, Stop
from windlass.worker.runner import RunnerConfig, table_size
from windlass.worker.stacks import Stacks
from windlass.worker.table import State, Table


class Child:
    """One runner process."""

    def __init__(self, process: asyncio.subprocess.Process, link: Link, table: Table, stacks: Stacks) -> None:
        self.process = process
        self.link = link
        self.table = table
        self.stacks = stacks
        self.hung = False
        """Whether we ended it because its loop stood still."""
        self.warned_on: Micros = 0
        self.runner: str | None = None
        """Its id, once it has a lease."""
        self.leasing = asyncio.Lock()
        self.stopping = False
        self.said_bye = False
        self.overdue: list[Overdue] = []
        """What becomes of jobs whose handlers would not end, once this process has."""
        self.problem: str | None = None
        self.noted: set[tuple[JobId, int]] = set()

    @classmethod
    async def start(cls, config: WorkerConfig) -> "Child":
        """A fresh process (exec, not fork), with its end of the line and the table."""
        ours, theirs = socket.socketpair()
        table, stacks = Table.create(table_size(config)), Stacks.create()
        told = RunnerConfig(worker=config, line=theirs.fileno(), table=table.descriptor, stacks=stacks.descriptor)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "windlass.worker.runner",
            msgspec.json.encode(told).decode(),
            pass_fds=(theirs.fileno(), table.descriptor, stacks.descriptor),
            start_new_session=True,
        )
        theirs.close()
        return cls(process, await Link.over(ours), table, stacks)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    def stop(self, grace: Micros) -> None:
        """Ask it to end; what it leaves is handed back, not crashed."""
        self.stopping = True
        self.link.say(Stop(grace))

    def kill(self) -> None:
        """End it now."""
        if self.process.returncode is None:
            self.process.kill()

    def attempts(self, state: State) -> frozenset[tuple[JobId, int]]:
        """The attempts that were in this state when last seen."""
        return frozenset((entry.id, entry.attempt) for entry in self.table.held() if entry.state is state)

    def ending(self) -> str:
        """How the process ended, in words."""
        code = self.process.returncode
        if self.problem is not None:
            return f"it could not start: {self.problem}"
        if code is None:
            return "still running"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}"

    def close(self) -> None:
        """Let go of everything that is left of it."""
        self.link.close()
        self.table.close()
        self.stacks.close()
