"""The cells of a runner: processes for handlers that asked for one, and for jobs that may have killed a runner."""

import asyncio
import contextlib
import secrets
import signal
import socket
import sys
from collections import deque
from datetime import UTC, datetime

import msgspec

from windlass.core.job import JobError, LogLine
from windlass.core.outcome import Crashed, Decided, Outcome
from windlass.core.retry import StoredPolicy
from windlass.core.text import cut, printable
from windlass.worker.cell import CellConfig, Ended, Failed, FromCell, Leave, Ready, Run, Said
from windlass.worker.config import WorkerConfig
from windlass.worker.descendants import descendants, end_tree, memory
from windlass.worker.link import LONGEST_MESSAGE
from windlass.worker.run import halted
from windlass.worker.work import Work

MOST_LINES = 50
LONGEST_LINE = 500
CHUNK = 64 * 1024
OUTPUT_SECONDS = 0.5
"""How long we wait for the end of what a handler printed; one that closed its output is not waited for twice."""

_encode = msgspec.json.Encoder().encode
_from_cell = msgspec.json.Decoder(FromCell)


class Output:
    """The last lines that a cell printed; the rest is read and forgotten, so that printing never blocks."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._open = ""
        self._mark = ""
        self.complete = asyncio.Event()

    def expect(self, mark: str) -> None:
        """From now on it is another job's, until this mark."""
        self._mark = mark
        self.complete.clear()

    def add(self, chunk: bytes) -> None:
        """Some more of it."""
        *whole, self._open = (self._open + chunk.decode("utf-8", "replace")).split("\n")
        if self._mark in whole[-2:]:
            whole = whole[: whole.index(self._mark)]
            if whole and not whole[-1]:
                whole.pop()  # the mark begins on a line of its own
            self.complete.set()
        self._lines.extend(cut(line, LONGEST_LINE) for line in whole[-MOST_LINES:])
        self._open = self._open[-LONGEST_LINE:]

    def take(self) -> list[str]:
        """What was printed since the last time."""
        lines = [*self._lines, *([self._open] if self._open else [])]
        self._lines.clear()
        self._open = ""
        return [printable(line) for line in lines[-MOST_LINES:]]


class CellFailed(Exception):
    """A cell could not load the app."""


class Cell:
    """One such process, as its runner sees it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._output = Output()
        self._reading = asyncio.create_task(self._read_output())
        self.jobs = 0
        self._mute = False
        self._baseline = 0

    @classmethod
    async def start(cls, app: str) -> "Cell":
        """A fresh process that has loaded the app."""
        ours, theirs = socket.socketpair()
        told = CellConfig(app, theirs.fileno())
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "windlass.worker.cell",
            msgspec.json.encode(told).decode(),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        theirs.close()
        cell = cls(process, *await asyncio.open_connection(sock=ours, limit=LONGEST_MESSAGE))
        await cell._load()
        return cell

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
                    _pass_on(work, lines)
                case Ended(settlement):
                    outcome = Decided(settlement)
        if outcome is None:
            await self.end()
        else:
            await self._hear_out()
        printed = self._output.take()
        if printed:
            _pass_on(work, tuple(_line(work, text) for text in printed))
        if outcome is not None:
            return outcome
        return halted(work) or Crashed(JobError("Crashed", self._ending(printed)))

    async def _hear_out(self) -> None:
        """What the handler printed comes by another way than its outcome, and may be slower."""
        try:
            async with asyncio.timeout(OUTPUT_SECONDS):
                await self._output.complete.wait()
        except TimeoutError:
            self._mute = True

    def leave(self) -> None:
        """Tell the handler that somebody wants it to stop."""
        self._say(_encode(Leave()))

    def kill(self) -> None:
        """End it and all that came of it."""
        end_tree(self._process.pid)

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self.kill()
        await self._process.wait()
        self._writer.close()
        with contextlib.suppress(TimeoutError):
            # A process that got away may hold the pipe open; what it prints is nobody's business.
            await asyncio.wait_for(asyncio.shield(self._reading), 0.2)
        self._reading.cancel()

    def fit(self, config: WorkerConfig) -> bool:
        """Whether it may be used again: young, slim, alive, and with nothing left running behind it."""
        if self._mute or self._process.returncode is not None or self.jobs >= config.recycle_jobs:
            return False
        limit = config.recycle_memory
        # A limit below what the app needs just to be loaded would end every cell after one job.
        if limit is not None and self._baseline < limit < memory(self._process.pid):
            return False
        return not descendants(self._process.pid)

    async def _load(self) -> None:
        match await self._hear():
            case Ready():
                self._baseline = memory(self._process.pid)
            case Failed(problem):
                await self.end()
                raise CellFailed(problem)
            case _:
                await self.end()
                raise CellFailed(self._ending(self._output.take()))

    async def _hear(self) -> FromCell | None:
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            return None
        return _from_cell.decode(line) if line.endswith(b"\n") else None

    def _say(self, message: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(message + b"\n")

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(CHUNK):
            self._output.add(chunk)

    def _ending(self, printed: list[str]) -> str:
        code = self._process.returncode or 0
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = f"; it printed: {printed[-1]}" if printed else ""
        return f"the process of this attempt ended: {how}{said}"


class Cells:
    """Cells that wait for their next job, and those at work."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._idle: list[Cell] = []
        self._busy: dict[Work, Cell] = {}

    async def run(self, work: Work, retry: StoredPolicy) -> Outcome:
        """One attempt in a cell; a suspect gets one that nobody uses before or after it."""
        try:
            cell = await self._cell(work)
        except (CellFailed, OSError) as error:
            return Crashed(JobError("CellFailed", cut(printable(f"no process could be started: {error}"), 4000)))
        self._busy[work] = cell
        try:
            return halted(work) or await cell.run(work, retry)
        finally:
            del self._busy[work]
            if work.suspect or not cell.fit(self._config):
                await cell.end()
            else:
                self._idle.append(cell)

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

    async def _cell(self, work: Work) -> Cell:
        if self._idle and not work.suspect:
            return self._idle.pop()
        return await Cell.start(self._config.app)


def _line(work: Work, text: str) -> LogLine:
    return LogLine(datetime.now(UTC), work.claimed.attempt, text)


def _pass_on(work: Work, lines: tuple[LogLine, ...]) -> None:
    """What was said in the cell, for the runner to write down."""
    work.lines.extend(lines)
    if work.unsent is not None:
        work.unsent.add(work)
