"""What a runner and a handler process exchange: messages over a socket pair, output through a pipe."""

import asyncio
import codecs
import os
from collections import deque

import msgspec

from windlass.core.jobs.job import Claimed, LogLine, Progress
from windlass.core.jobs.outcome import Settlement
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.text import printable

MAX_LINES = 50
MAX_LINE_LENGTH = 500


class Run(msgspec.Struct, frozen=True, tag=True):
    """Runner → process: run this job."""

    job: Claimed
    retry: StoredPolicy
    """The retry policy of its queue, if its task has none."""
    mark: str
    """A mark that is printed at the end, so that the runner can tell the output of jobs apart."""


class CancelRequested(msgspec.Struct, frozen=True, tag=True):
    """Runner → process: the job's cancellation was requested; the handler may see it."""


class Close(msgspec.Struct, frozen=True, tag=True):
    """Runner → process: no more jobs; run the stop hooks and end."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Process → runner: the app is loaded."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Process → runner: the app cannot be loaded."""

    problem: str


class Reported(msgspec.Struct, frozen=True, tag=True):
    """Process → runner: progress and log lines."""

    progress: Progress | None
    lines: tuple[LogLine, ...]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """Process → runner: the handler has returned; its settlement."""

    settlement: Settlement
    fit: bool = True
    """Whether the process is as it was before this handler."""
    trace: tuple[str, str] | None = None
    """The ids of the attempt's trace and span."""


ToProcess = Run | CancelRequested | Close
FromProcess = Ready | Failed | Reported | Ended


class HandlerProcessConfig(msgspec.Struct, frozen=True):
    """The command line of a handler process."""

    app: str
    socket: int
    """The descriptor of its end of the socket pair."""
    parent: int
    """The runner's process id."""
    mark: str
    """A mark that is printed when the app is loaded: earlier output belongs to no job."""
    modules: tuple[str, ...] = ()
    """Modules to import besides the app's."""
    import_path: tuple[str, ...] = ()
    """The import path of its runner."""
    figures: int | None = None
    """The descriptor of the memory for figures, if they are wanted."""
    log: int | None = None
    """The descriptor of the worker's standard error, for log lines; None: they go where all output goes."""
    log_format: str = "text"
    server: str = ""
    """The REST server that the app reaches its jobs through, if any; the token is in the environment."""


class Output(asyncio.Protocol):
    """The reading end of a handler process's pipe. Everything is read; only the last lines are kept."""

    def __init__(self) -> None:
        # Characters may be cut in two by the pipe.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._open = ""
        self._mark = ""
        self._transport: asyncio.ReadTransport | None = None
        self.complete = asyncio.Event()
        """Set when all output of the present job has arrived."""
        self.closed = asyncio.Event()
        """Set when no process can print any more."""

    @classmethod
    async def of(cls, read: int) -> "Output":
        """The output from this end of a pipe."""
        output = cls()
        pipe = os.fdopen(read, "rb", 0)
        output._transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: output, pipe)
        return output

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

    def expect(self, mark: str) -> None:
        """From now on output belongs to the next job, until this mark."""
        self._mark = mark
        self.complete.clear()

    def data_received(self, data: bytes) -> None:
        """A chunk of output."""
        *whole, self._open = (self._open + self._decoder.decode(data)).split("\n")
        if self._mark in whole:
            whole = whole[: whole.index(self._mark)]
            if whole and not whole[-1]:
                whole.pop()  # the mark begins on a line of its own
            self.complete.set()
        # The end of a long line, as of a long output, shows the error.
        self._lines.extend(line[-MAX_LINE_LENGTH:] for line in whole[-MAX_LINES:])
        self._open = self._open[-MAX_LINE_LENGTH:]

    def connection_lost(self, error: Exception | None) -> None:
        """Every process that held the other end has ended, or this end was closed."""
        self.complete.set()
        self.closed.set()

    def take(self) -> list[str]:
        """The output since the last call."""
        lines = [*self._lines, *([self._open] if self._open else [])]
        self._lines.clear()
        self._open = ""
        return [printable(line) for line in lines[-MAX_LINES:]]
