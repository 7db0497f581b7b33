"""A handler process from its runner's side: started, given jobs, ended with its descendants."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import msgspec

from windlass.core.jobs.job import JobError, LogLine
from windlass.core.jobs.outcome import Crashed, Decided, Outcome
from windlass.core.jobs.retry import StoredPolicy
from windlass.observe.figures import Figures
from windlass.observe.process import process_figures
from windlass.worker.channel import MAX_MESSAGE_LENGTH
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers import process_protocol as protocol
from windlass.worker.handlers.attempt import halted
from windlass.worker.handlers.work import Work
from windlass.worker.load import loaded_in
from windlass.worker.processes import (
    MARK,
    another_stderr,
    code_of_ended,
    descendants,
    describe_exit,
    kill_marked,
    kill_tree,
    memory,
)
from windlass.worker.stacks import user_frames
from windlass.worker.stop_signals import STOP_SIGNALS
from windlass.worker.through_server import token_in_environment

OUTPUT_SECONDS = 0.5
"""Max wait for the last output of a handler; after it closed its output there is no second wait."""
LOAD_SECONDS = 300.0
"""How long a handler process may take to load the app; no job's timeout counts it."""
LOOK_SECONDS = 1.0
OUT_OF_RESOURCES = (OSError, RuntimeError, MemoryError)
"""Raised if no process, descriptor, thread or memory is available: not caused by the job."""
OUT_OF_RESOURCES_PAUSE = 1.0

_kill_thread = ThreadPoolExecutor(1, "windlass-strays")
"""A separate thread: handlers may take all threads of the loop."""
_FATAL = "Fatal Python error"
_encode = msgspec.json.Encoder().encode
_from_process = msgspec.json.Decoder(protocol.FromProcess)


class HandlerProcessFailed(Exception):
    """A handler process could not load the app."""


class HandlerProcess:
    """One handler process."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        output: protocol.Output,
        mark: str,
        figures: Figures | None,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._output = output
        self._mark = mark
        self._figures = figures
        self._absorbed: dict[int, int] = {}
        """Its metrics when they were last added to the runner's."""
        self._code: int | None = None
        """How it ended."""
        self._ended = asyncio.create_task(self._follow_end())
        self.jobs = 0
        self._loaded = False
        self._spoiled = False
        self._hung_up = False
        self._baseline = 0

    @classmethod
    async def start(cls, config: WorkerConfig, mark: str) -> "HandlerProcess":
        """Start a new process, which begins to load the app; an error of OUT_OF_RESOURCES leaves nothing behind."""
        mark = f"{mark}.{secrets.token_hex(8)}"
        _kill_thread.submit(int)  # the thread that kills leftovers exists before the process does
        with contextlib.ExitStack() as made, contextlib.ExitStack() as lent:
            ours, theirs = socket.socketpair()
            made.callback(ours.close)
            lent.callback(theirs.close)
            # A separate pipe, not the loop's: some loops end their wait for a process only with its pipes, and a
            # child that it left behind may hold those open for ever.
            read, write = os.pipe()
            lent.callback(os.close, write)
            output = await protocol.Output.of(read)
            made.callback(output.close)
            output.expect(mark)
            reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_MESSAGE_LENGTH)
            made.callback(writer.close)
            figures = None if process_figures() is None else Figures.create_shared()
            shared = None if figures is None else figures.descriptor
            if figures is not None:
                lent.callback(figures.close)
            if (log := None if config.embedded else another_stderr()) is not None:
                lent.callback(os.close, log)
            process_config = protocol.HandlerProcessConfig(
                *(config.app, theirs.fileno(), os.getpid(), mark, config.modules, tuple(sys.path)),
                *(shared, log, config.log_format, config.server),
            )
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "windlass.worker.handlers.process_main",
                msgspec.json.encode(process_config).decode(),
                pass_fds=[each for each in (theirs.fileno(), shared, log) if each is not None],
                start_new_session=True,
                env={**os.environ, MARK: mark, **token_in_environment(config)},
                cwd=loaded_in(),  # in the folder that a handler chose, a relative address names another store
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write,
                stderr=write,
            )
            made.pop_all()
        return cls(process, reader, writer, output, mark, figures)

    async def load(self) -> bool:
        """Wait until it has loaded the app; raises HandlerProcessFailed. False: a signal to all processes has
        ended it.
        """
        if self._loaded:
            return True
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise HandlerProcessFailed(f"the app was not loaded within {LOAD_SECONDS:g} s") from None
        match message:
            case protocol.Ready():
                self._loaded, self._baseline = True, memory(self._process.pid)
            case protocol.Failed(problem):
                raise HandlerProcessFailed(problem)
            case _:
                await self.end()
                if -(self._code or 0) in STOP_SIGNALS:
                    return False
                raise HandlerProcessFailed(self._ending(self._output.take()))
        await self._await_output()
        self._output.take()  # printed by the app when it was loaded, not by a job
        return True

    async def run(self, work: Work, retry: StoredPolicy) -> Outcome:
        """Run one attempt. Whatever happens to the process, there is an outcome."""
        self.jobs += 1
        mark = secrets.token_hex(8)
        self._output.expect(mark)
        self._send(_encode(protocol.Run(work.claimed, retry, mark)))
        if work.cancelled:
            self.request_cancel()  # requested while the process loaded the app
        outcome: Outcome | None = None
        while outcome is None and (message := await self._receive()) is not None:
            match message:
                case protocol.Reported(progress, lines):
                    work.latest_progress = progress or work.latest_progress
                    work.add_lines(lines)
                case protocol.Ended(settlement, fit, trace):
                    outcome, self._spoiled, work.trace = Decided(settlement), not fit, trace
                    self._add_figures()
        if outcome is None:
            # Its own exit code says more than SIGKILL; but a process that only closed its socket may go on for ever.
            self._hung_up = not (await asyncio.wait([self._ended], timeout=OUTPUT_SECONDS))[0] and not work.halted
            await self.end()
        else:
            await self._await_output()
        if printed := self._output.take():
            now = datetime.now(UTC)
            work.add_lines(LogLine(now, work.claimed.attempt, text) for text in printed)
        if outcome is not None:
            return outcome
        return halted(work) or Crashed(JobError("Crashed", self._ending(printed)))

    async def _await_output(self) -> None:
        """Wait for the handler's output, which may arrive after its outcome."""
        try:
            async with asyncio.timeout(OUTPUT_SECONDS):
                await self._output.complete.wait()
        except TimeoutError:
            self._spoiled = True

    def request_cancel(self) -> None:
        """Tell the handler that its cancellation was requested."""
        self._send(_encode(protocol.CancelRequested()))

    def kill(self) -> None:
        """Kill it and its descendants."""
        if self._code is None:
            kill_tree(self._process.pid)

    async def end(self, seconds: float = 0) -> None:
        """Let it stop by itself if it has time, else kill it, and wait for its end."""
        if seconds and self._loaded and self.alive:
            self._output.expect(secrets.token_hex(8))
            self._send(_encode(protocol.Close()))
            await asyncio.wait([self._ended], timeout=seconds)
            # It has no job any more: later output, such as a failed hook, goes to the worker's own output.
            sys.stderr.writelines(f"{line}\n" for line in self._output.take())
        self.kill()
        await asyncio.shield(self._ended)

    @property
    def alive(self) -> bool:
        """Whether it can run another job."""
        return self._code is None and not self._reader.at_eof()

    def fit(self, config: WorkerConfig) -> bool:
        """Whether it may be used again: within its limits of jobs and memory, alive, and without descendants."""
        if self._spoiled or not self.alive or self.jobs >= config.recycle_jobs:
            return False
        limit = config.recycle_memory
        # A limit below what the app needs just to be loaded would end every process after one job.
        if limit is not None and self._baseline < limit < memory(self._process.pid):
            return False
        return not descendants(self._process.pid)

    async def _follow_end(self) -> None:
        """When the process has ended, kill its descendants and close its socket and output."""
        await self._wait()
        self._add_figures()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._kill_leftovers()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTPUT_SECONDS):
                await self._output.closed.wait()
        self._output.close()
        self._writer.transport.abort()

    def _add_figures(self) -> None:
        """Add what it counted to the figures of the runner."""
        ours = process_figures()
        if ours is not None and self._figures is not None:
            ours.absorb(self._figures, self._absorbed)

    async def _wait(self) -> None:
        """Wait until it has ended. This also polls: a handler of this process may have taken SIGCHLD, which
        notifies the loop, or have waited for any child and reaped this one.
        """
        waiting = asyncio.ensure_future(self._process.wait())
        while self._code is None:
            done, _ = await asyncio.wait([waiting], timeout=LOOK_SECONDS)
            self._code = waiting.result() if done else code_of_ended(self._process.pid)
        waiting.cancel()

    async def _kill_leftovers(self) -> None:
        """Repeat until no leftover lives: the next attempt must not overlap them."""
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(_kill_thread, kill_marked, f"{MARK}={self._mark}")
            except OUT_OF_RESOURCES:
                await asyncio.sleep(OUT_OF_RESOURCES_PAUSE)
            else:
                return

    async def _receive(self) -> protocol.FromProcess | None:
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            return None
        return _from_process.decode(line) if line.endswith(b"\n") else None

    def _send(self, message: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(message + b"\n")

    def _ending(self, printed: list[str]) -> str:
        how = describe_exit(self._code or 0)
        if self._hung_up:
            how = "it closed the socket to its runner, and was killed"
        said = f"; it printed: {printed[-1]}" if printed else ""
        if any(line.startswith(_FATAL) for line in printed):
            said = " at " + user_frames("\n".join(printed))
        return f"the process of this attempt ended: {how}{said}"
