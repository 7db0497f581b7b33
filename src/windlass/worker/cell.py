"""A cell: a process of its own for one handler at a time. It can be killed, and cannot hurt its runner.

Started fresh, with one end of a socket pair; whatever its handlers print goes into pipes to the runner. If the runner
goes away, the cell ends at once, and on Linux the kernel sees to it.
"""

import asyncio
import contextlib
import contextvars
import ctypes
import faulthandler
import io
import os
import queue
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import msgspec

from windlass.client.app import App
from windlass.client.registry import Registry
from windlass.core.job import Claimed, LogLine, Progress
from windlass.core.outcome import Outcome, Settlement, decide
from windlass.core.retry import StoredPolicy
from windlass.errors import WindlassError
from windlass.observe.logs import log_events
from windlass.store.clock import since_boot
from windlass.worker.lifespan import Lifespan
from windlass.worker.load import import_trouble, load_app
from windlass.worker.logbook import keep_lines, stamp_records
from windlass.worker.run import run_async, run_sync
from windlass.worker.surroundings import Surroundings
from windlass.worker.work import Work

SAY_EVERY = 0.1
"""Seconds between messages about progress: a handler may call it a million times."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Run(msgspec.Struct, frozen=True, tag=True):
    """Runner → cell: do this."""

    job: Claimed
    retry: StoredPolicy
    """What its queue says about retries, if its task says nothing."""
    mark: str
    """To be printed at the end, so that the runner knows whose output is whose."""


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Runner → cell: somebody wants the job stopped; the handler may see it."""


class Close(msgspec.Struct, frozen=True, tag=True):
    """Runner → cell: no more jobs; run the stop hooks and end."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Cell → runner: the app is loaded."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Cell → runner: the app cannot be loaded."""

    problem: str


class Said(msgspec.Struct, frozen=True, tag=True):
    """Cell → runner: progress and log lines."""

    progress: Progress | None
    lines: tuple[LogLine, ...]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """Cell → runner: the handler has returned, and this becomes of its job."""

    settlement: Settlement
    fit: bool = True
    """Whether the next handler would find the process as this one found it."""


ToCell = Run | Leave | Close
FromCell = Ready | Failed | Said | Ended

_encode = msgspec.json.Encoder().encode
_to_cell = msgspec.json.Decoder(ToCell)


class CellConfig(msgspec.Struct, frozen=True):
    """What the runner tells a cell on its command line."""

    app: str
    line: int
    parent: int
    """The runner's process id."""
    mark: str
    """To be printed when the app is loaded: what it printed meanwhile is no job's output."""


class Line:
    """The cell's end of the line; written by the handler's threads, read by one of our own."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._guard = threading.Lock()
        self.work: CellWork | None = None
        """The job at hand."""
        self.spoken = threading.Event()
        """Set when its handler has said something."""

    def say(self, message: FromCell) -> None:
        """Send, whole."""
        with self._guard:
            self._end.sendall(_encode(message) + b"\n")

    def messages(self) -> "queue.SimpleQueue[Run | Close]":
        """A thread reads the line from now on: jobs go into the queue, requests to stop to the job at hand."""
        jobs: queue.SimpleQueue[Run | Close] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(jobs,), name="windlass-line", daemon=True).start()
        threading.Thread(target=self._pass_on, name="windlass-said", daemon=True).start()
        return jobs

    def _read(self, jobs: "queue.SimpleQueue[Run | Close]") -> None:
        with self._end.makefile("rb") as lines:
            for line in lines:
                message = _to_cell.decode(line)
                if not isinstance(message, Leave):
                    jobs.put(message)
                elif self.work is not None:
                    self.work.cancel()
        # The runner is gone: nobody will hear how this ends, and somebody else will do it again.
        os._exit(1)

    def _pass_on(self) -> None:
        """Now and then, so that the last thing said before a long silence is heard too."""
        while True:
            self.spoken.wait()
            self.spoken.clear()
            if (work := self.work) is not None:
                with contextlib.suppress(OSError):
                    work.tell()
            time.sleep(SAY_EVERY)


class CellWork(Work):
    """A job in a cell: what its handler says is passed on to the runner, by a thread that never keeps it waiting."""

    __slots__ = ("_guard", "_line", "_untold")

    def __init__(self, claimed: Claimed, registry: Registry, line: Line) -> None:
        now = since_boot()
        super().__init__(claimed, registry.get(claimed.type), -1, now)
        self.started_on = now
        self._line = line
        self._guard = threading.Lock()
        self._untold = False

    def progress(self, progress: Progress) -> None:
        """Called by the handler."""
        super().progress(progress)
        self._untold = True
        self._line.spoken.set()

    def log(self, text: str) -> None:
        """Called by the handler."""
        super().log(text)
        self._untold = True
        self._line.spoken.set()

    def tell(self) -> None:
        """Pass on what was said and not passed on yet."""
        with self._guard:
            if self._untold:
                self._untold = False
                lines = tuple(self.lines)
                # In place, and only what we have seen: the handler's thread may be adding to it.
                del self.lines[: len(lines)]
                self._line.say(Said(self.said, lines))


def serve(app: App, line: Line, loop: asyncio.Runner) -> None:
    """One job after the other, in the main thread, where handlers expect to be; until told to close."""
    random, jobs, surroundings = Random(), line.messages(), Surroundings()
    line.say(Ready())
    while isinstance(told := jobs.get(), Run):
        work = line.work = CellWork(told.job, app.registry, line)
        outcome = _run(work, loop)
        line.work = None
        settlement = decide(told.job, outcome, work.definition.policy(told.retry), random)
        _end_output(told.mark)
        work.tell()
        line.say(Ended(settlement, fit=surroundings.intact()))


def _end_output(mark: str) -> None:
    """A handler may have closed or replaced its streams: that is its own loss."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.write(1, f"\n{mark}\n".encode())


def _run(work: Work, loop: asyncio.Runner) -> Outcome:
    """In a context of its own, as anywhere: what a handler sets must not be there for the next one."""
    if work.definition.is_async:
        return loop.run(_run_alone(work), context=contextvars.copy_context())
    return contextvars.copy_context().run(run_sync, work)


async def _run_alone(work: Work) -> Outcome:
    """On the loop that the start hooks used: what they left running goes on, what the handler leaves ends with it."""
    before = asyncio.all_tasks()
    with ThreadPoolExecutor(thread_name_prefix="windlass-cell") as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        outcome = await run_async(work)
        left = asyncio.all_tasks() - before
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
    return outcome


def tie_to(parent: int) -> None:
    """Ask the kernel to end us when the runner does, also if a handler holds the interpreter at that moment.

    And to make us the parent of whatever our children leave behind, so that it is found and ended with us.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before we could ask


def _prepare_output() -> None:
    """What was printed before a crash is there to be read, and where a crash in C code happened."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    faulthandler.enable()


def main() -> None:
    """The process's own main."""
    config = msgspec.json.decode(sys.argv[1], type=CellConfig)
    tie_to(config.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What handlers start must not hold the line.
    os.set_inheritable(config.line, False)
    _prepare_output()
    line = Line(socket.socket(fileno=config.line))
    loop, emit = asyncio.Runner(), log_events()
    try:
        app = load_app(config.app)
        app.offload()  # a relative folder is the one here, wherever handlers may go
        lifespan = Lifespan(app, emit)
        loop.run(lifespan.start(), context=contextvars.copy_context())
    except WindlassError as error:
        line.say(Failed(str(error)))
        os._exit(2)
    except BaseException as error:
        line.say(Failed(import_trouble(config.app, error)))
        os._exit(2)
    stamp_records()
    keep_lines(app.keep_logs, printed=True)
    _end_output(config.mark)
    serve(app, line, loop)
    loop.run(lifespan.stop(), context=contextvars.copy_context())
    # Hard, as runners end: a thread that a handler left must not keep it alive.
    os._exit(0)


if __name__ == "__main__":
    main()
