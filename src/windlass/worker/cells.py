"""The cells of a runner: processes for handlers that asked for one, and for jobs that may have killed a runner."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import msgspec

from windlass.core.job import JobError, LogLine
from windlass.core.outcome import Crashed, Decided, Outcome, Raised
from windlass.core.retry import StoredPolicy
from windlass.core.text import cut, printable
from windlass.worker.cell import CellConfig, Close, Ended, Failed, FromCell, Leave, Ready, Run, Said
from windlass.worker.config import WorkerConfig
from windlass.worker.descendants import descendants, end_strays, end_tree, memory
from windlass.worker.link import LONGEST_MESSAGE
from windlass.worker.output import Output
from windlass.worker.run import halted
from windlass.worker.stacks import places
from windlass.worker.work import Work

OUTPUT_SECONDS = 0.5
"""How long we wait for the end of what a handler printed; one that closed its output is not waited for twice."""
LOAD_SECONDS = 300.0
"""How long a cell may take to load the app, which no job's timeout counts."""
LONGEST_PROBLEM = 4_000
MARK = "WINDLASS_CELL"
"""In the environment of a cell, and so of all that it starts."""

_sweeper = ThreadPoolExecutor(1, "windlass-strays")
"""A thread of our own: those of the loop may all be taken by handlers."""
_FATAL = "Fatal Python error"
_encode = msgspec.json.Encoder().encode
_from_cell = msgspec.json.Decoder(FromCell)


class CellFailed(Exception):
    """A cell could not load the app."""


class Cell:
    """One such process, as its runner sees it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        output: Output,
        mark: str,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._output = output
        self._mark = mark
        self._ended = asyncio.create_task(self._see_end())
        self.jobs = 0
        self._loaded = False
        self._spoiled = False
        self._hung_up = False
        self._baseline = 0

    @classmethod
    async def start(cls, app: str) -> "Cell":
        """A fresh process, which begins to load the app."""
        mark = secrets.token_hex(8)
        ours, theirs = socket.socketpair()
        # A pipe of our own, not the loop's: some loops end their wait for a process only with its pipes, and a child
        # that it left behind may hold those open for ever.
        read, write = os.pipe()
        output = await Output.of(read)
        output.expect(mark)
        reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST_MESSAGE)
        told = CellConfig(app, theirs.fileno(), os.getpid(), mark)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "windlass.worker.cell",
                msgspec.json.encode(told).decode(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={**os.environ, MARK: mark},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write,
                stderr=write,
            )
        except BaseException:
            writer.close()
            output.close()
            raise
        finally:
            theirs.close()
            os.close(write)
        return cls(process, reader, writer, output, mark)

    async def load(self) -> None:
        """Until it has loaded the app; raises CellFailed."""
        if self._loaded:
            return
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                message = await self._hear()
        except TimeoutError:
            raise CellFailed(f"the app was not loaded within {LOAD_SECONDS:g} s") from None
        match message:
            case Ready():
                self._loaded, self._baseline = True, memory(self._process.pid)
            case Failed(problem):
                raise CellFailed(problem)
            case _:
                await self.end()
                raise CellFailed(self._ending(self._output.take()))
        await self._hear_out()
        self._output.take()  # printed by the app when it was loaded, not by a job

    async def run(self, work: Work, retry: StoredPolicy) -> Outcome:
        """One attempt. Whatever happens to the process, there is an outcome."""
        self.jobs += 1
        mark = secrets.token_hex(8)
        self._output.expect(mark)
        self._say(_encode(Run(work.claimed, retry, mark)))
        outcome: Outcome | None = None
        while outcome is None and (message := await self._hear()) is not None:
            match message:
                case Said(progress, lines):
                    work.said = progress or work.said
                    work.hear(lines)
                case Ended(settlement, fit):
                    outcome, self._spoiled = Decided(settlement), not fit
        if outcome is None:
            # Its own way to end says more than ours; but one that only hung up may go on for ever.
            self._hung_up = not (await asyncio.wait([self._ended], timeout=OUTPUT_SECONDS))[0] and not work.halted
            await self.end()
        else:
            await self._hear_out()
        printed = self._output.take()
        if printed:
            work.hear(_line(work, text) for text in printed)
        if outcome is not None:
            return outcome
        return halted(work) or Crashed(JobError("Crashed", self._ending(printed)))

    async def _hear_out(self) -> None:
        """What the handler printed comes by another way than its outcome, and may be slower."""
        try:
            async with asyncio.timeout(OUTPUT_SECONDS):
                await self._output.complete.wait()
        except TimeoutError:
            self._spoiled = True

    def leave(self) -> None:
        """Tell the handler that somebody wants it to stop."""
        self._say(_encode(Leave()))

    def kill(self) -> None:
        """End it and all that came of it."""
        if self._process.returncode is None:
            end_tree(self._process.pid)

    async def end(self, seconds: float = 0) -> None:
        """Let it stop by itself if it has time, kill it, and wait until it is gone."""
        if seconds and self._loaded and self.alive:
            self._output.expect(secrets.token_hex(8))
            self._say(_encode(Close()))
            await asyncio.wait([self._ended], timeout=seconds)
            # It has no job any more: what it says now, such as that a hook failed, is for the worker's own output.
            sys.stderr.writelines(f"{line}\n" for line in self._output.take())
        self.kill()
        await asyncio.shield(self._ended)

    @property
    def alive(self) -> bool:
        """Whether it can be given a job."""
        return self._process.returncode is None and not self._reader.at_eof()

    def fit(self, config: WorkerConfig) -> bool:
        """Whether it may be used again: young, slim, alive, and with nothing left running behind it."""
        if self._spoiled or not self.alive or self.jobs >= config.recycle_jobs:
            return False
        limit = config.recycle_memory
        # A limit below what the app needs just to be loaded would end every cell after one job.
        if limit is not None and self._baseline < limit < memory(self._process.pid):
            return False
        return not descendants(self._process.pid)

    async def _see_end(self) -> None:
        """With the process all that came of it ends; so do its line and its output, whoever holds them open."""
        await self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.get_running_loop().run_in_executor(_sweeper, end_strays, f"{MARK}={self._mark}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTPUT_SECONDS):
                await self._output.closed.wait()
        self._output.close()
        self._writer.transport.abort()

    async def _hear(self) -> FromCell | None:
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            return None
        return _from_cell.decode(line) if line.endswith(b"\n") else None

    def _say(self, message: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(message + b"\n")

    def _ending(self, printed: list[str]) -> str:
        code = self._process.returncode or 0
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if self._hung_up:
            how = "it closed the line to its runner, and was killed"
        said = f"; it printed: {printed[-1]}" if printed else ""
        if any(line.startswith(_FATAL) for line in printed):
            said = " at " + places("\n".join(printed))
        return f"the process of this attempt ended: {how}{said}"


class Cells:
    """Cells that wait for their next job, and those at work."""

    def __init__(self, config: WorkerConfig, *, stop_seconds: float = 0) -> None:
        self._config = config
        self._stop_seconds = stop_seconds
        self._idle: list[Cell] = []
        self._busy: dict[Work, Cell] = {}

    async def run(self, work: Work, retry: StoredPolicy, begin: Callable[[Work], None]) -> Outcome:
        """One attempt in a cell; a suspect gets one that nobody uses before or after it.

        `begin` is called when the handler starts: its time does not count before that.
        """
        cell, outcome = None, None
        try:
            cell = self._busy[work] = self._waiting(work) or await Cell.start(self._config.app)
            await cell.load()
            outcome = halted(work)
            if outcome is None:
                begin(work)
                outcome = await cell.run(work, retry)
            return outcome
        except (CellFailed, OSError) as error:
            # Not the job's doing, and perhaps over soon: tried again with the pauses of any other failure.
            problem = cut(printable(f"no process could be started: {error}"), LONGEST_PROBLEM)
            return halted(work) or Raised(error, JobError("CellFailed", problem))
        finally:
            self._busy.pop(work, None)
            if cell is not None:
                await self._put_away(cell, again=isinstance(outcome, Decided) and not work.suspect)

    async def _put_away(self, cell: Cell, *, again: bool) -> None:
        if again and cell.fit(self._config):
            self._idle.append(cell)
        else:
            await cell.end(self._stop_seconds)

    async def close(self) -> None:
        """Let those that wait for a job stop by themselves."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(cell.end(self._stop_seconds) for cell in idle))

    def leave(self, work: Work) -> None:
        """Tell a handler that somebody wants it to stop."""
        if work in self._busy:
            self._busy[work].leave()

    def kill(self, work: Work) -> None:
        """End the cell of one job."""
        if work in self._busy:
            self._busy[work].kill()

    def kill_all(self) -> None:
        """End every cell."""
        for cell in [*self._idle, *self._busy.values()]:
            cell.kill()

    def _waiting(self, work: Work) -> Cell | None:
        """One that was used before and lives."""
        while self._idle and not work.suspect:
            cell = self._idle.pop()
            if cell.alive:
                return cell
        return None


def _line(work: Work, text: str) -> LogLine:
    return LogLine(datetime.now(UTC), work.claimed.attempt, text)
