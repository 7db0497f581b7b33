"""A handler process: runs one handler at a time, can be killed, and cannot hurt its runner.

Started fresh, with one end of a socket pair; its output goes through a pipe to the runner. If the runner ends, it
ends at once; on Linux the kernel kills it.
"""

import asyncio
import contextlib
import contextvars
import ctypes
import faulthandler
import importlib
import io
import locale
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import msgspec

from windlass.client.app import App
from windlass.core.jobs.job import Progress
from windlass.core.jobs.outcome import Outcome, decide
from windlass.errors import WindlassError
from windlass.observe.figures import Figures
from windlass.observe.logs import log_events
from windlass.observe.process import want_figures
from windlass.store.clock import since_boot
from windlass.worker.handlers import process_protocol as protocol
from windlass.worker.handlers.attempt import run_sync
from windlass.worker.handlers.hooks import Lifespan
from windlass.worker.handlers.job_logging import add_job_to_records, keep_job_logs, show_app_logs
from windlass.worker.handlers.start import run_attempt
from windlass.worker.handlers.work import Work
from windlass.worker.load import import_trouble, load_app_for_work
from windlass.worker.stop_signals import STOP_SIGNALS, ignore_in_this_process
from windlass.worker.through_server import redirect_app

NOTES_EVERY = 0.1
"""Seconds between messages about progress: a handler may call it a million times."""
MAX_THREADS_LEFT = 16
"""Threads beyond those of the start: a few may be a reused pool, more are being left behind."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
_encode = msgspec.json.Encoder().encode
_to_process = msgspec.json.Decoder(protocol.ToProcess)


class RunnerConnection:
    """The connection to the runner; written by the handler's threads, read by a thread of its own."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._guard = threading.Lock()
        self.work: ProcessWork | None = None
        """The current job."""
        self._cancelled = False
        """Whether the cancellation of the job that was sent last was requested."""
        self.has_notes = threading.Event()
        """Set when its handler has new notes."""

    def send(self, message: protocol.FromProcess) -> None:
        """Send one message."""
        with self._guard:
            self._end.sendall(_encode(message) + b"\n")

    def messages(self) -> "queue.SimpleQueue[protocol.Run | protocol.Close]":
        """Start reading in a thread: jobs go into the queue, cancel requests to the current job."""
        jobs: queue.SimpleQueue[protocol.Run | protocol.Close] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(jobs,), name="windlass-runner", daemon=True).start()
        threading.Thread(target=self._send_notes, name="windlass-notes", daemon=True).start()
        return jobs

    def _read(self, jobs: "queue.SimpleQueue[protocol.Run | protocol.Close]") -> None:
        with self._end.makefile("rb") as lines:
            for line in lines:
                message = _to_process.decode(line)
                self._cancelled = isinstance(message, protocol.CancelRequested)
                if not isinstance(message, protocol.CancelRequested):
                    jobs.put(message)
                elif self.work is not None:
                    self.work.cancel()
        # The runner has ended: the outcome would be lost, and the job will be rescued.
        os._exit(1)

    def begin(self, work: "ProcessWork") -> None:
        """Make this the current job; its cancellation may have been requested before."""
        self.work = work
        if self._cancelled:
            work.cancel()

    def _send_notes(self) -> None:
        """Send notes at intervals, so that the last note before a long pause is sent too."""
        while True:
            self.has_notes.wait()
            self.has_notes.clear()
            if (work := self.work) is not None:
                with contextlib.suppress(OSError):
                    work.send_notes()
            time.sleep(NOTES_EVERY)


class ProcessWork(Work, eq=False, kw_only=True):
    """A job in a handler process: a thread sends its notes to the runner without delaying the handler."""

    runner: RunnerConnection
    guard: Any = msgspec.field(default_factory=threading.Lock)
    has_unsent_notes: bool = False

    def progress(self, progress: Progress) -> None:
        """Called by the handler."""
        Work.progress(self, progress)
        self.has_unsent_notes = True
        self.runner.has_notes.set()

    def log(self, text: str) -> None:
        """Called by the handler."""
        Work.log(self, text)
        self.has_unsent_notes = True
        self.runner.has_notes.set()

    def send_notes(self) -> None:
        """Send new notes to the runner."""
        with self.guard:
            if self.has_unsent_notes:
                self.has_unsent_notes = False
                lines = tuple(self.lines)
                # In place, and only the notes read here: the handler's thread may be adding to it.
                del self.lines[: len(lines)]
                self.runner.send(protocol.Reported(self.latest_progress, lines))


def serve(app: App, runner: RunnerConnection, loop: asyncio.Runner) -> None:
    """Run one job after the other until `Close`, in the main thread, where handlers expect to be."""
    random, jobs, globals_ = Random(), runner.messages(), ProcessGlobals()
    runner.send(protocol.Ready())
    while isinstance(message := jobs.get(), protocol.Run):
        now, definition = since_boot(), app.registry.get(message.job.type)
        work = ProcessWork(message.job, definition, -1, now, started_on=now, runner=runner)
        runner.begin(work)
        outcome = _run(work, loop)
        runner.work = None
        settlement = decide(message.job, outcome, work.definition.policy(message.retry), random)
        _end_output(message.mark)
        work.send_notes()
        runner.send(protocol.Ended(settlement, globals_.unchanged(), work.trace))


def _end_output(mark: str) -> None:
    """Flush the output and print the mark; a handler may have closed or replaced its streams."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.write(1, f"\n{mark}\n".encode())


def _run(work: Work, loop: asyncio.Runner) -> Outcome:
    """Run in a new context: what a handler sets must not be there for the next one."""
    if work.definition.is_async:
        return loop.run(_run_alone(work), context=contextvars.copy_context())
    return contextvars.copy_context().run(run_sync, work)


async def _run_alone(work: Work) -> Outcome:
    """Run on the loop of the start hooks: their tasks go on, those that the handler leaves end with it."""
    before = asyncio.all_tasks()
    with ThreadPoolExecutor(thread_name_prefix="windlass-handler") as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        outcome = await run_attempt(work)
        left = asyncio.all_tasks() - before
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
    return outcome


def tie_to(parent: int) -> None:
    """Ask the kernel to end this process when the runner ends, also if a handler holds the interpreter at that
    moment.

    It also makes this process the parent of orphaned descendants, so that they are found and ended with it.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the runner had ended before the request


def _prepare_output() -> None:
    """Flush each line, and print where C code crashes, so that a crash can be explained."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    faulthandler.enable()


def main() -> None:
    """The main function of the process."""
    config = msgspec.json.decode(sys.argv[1], type=protocol.HandlerProcessConfig)
    tie_to(config.parent)
    ignore_in_this_process(*STOP_SIGNALS)
    # What handlers start must not keep these open.
    for descriptor in (config.socket, config.log):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    _prepare_output()
    if config.figures is not None:
        figures = want_figures(Figures.shared(config.figures))
        figures.is_absorbed = True
        figures.close()
    runner = RunnerConnection(socket.socket(fileno=config.socket))
    log = None if config.log is None else os.fdopen(config.log, "w", encoding="utf-8", errors="backslashreplace")
    loop, emit = asyncio.Runner(), log_events(format=config.log_format, stream=log)
    sys.path.extend(each for each in config.import_path if each not in sys.path)
    try:
        app = load_app_for_work(config.app)
        redirect_app(app, config.server, "")
        for module in config.modules:
            importlib.import_module(module)
        app.offload()  # a relative folder is the one here, wherever handlers may go
        lifespan = Lifespan(app, emit)
        loop.run(lifespan.start(), context=contextvars.copy_context())
    except WindlassError as error:
        runner.send(protocol.Failed(str(error)))
        os._exit(2)
    except BaseException as error:
        runner.send(protocol.Failed(import_trouble(config.app, error)))
        os._exit(2)
    add_job_to_records()
    show_app_logs(printed=True, format=config.log_format, log=log)
    keep_job_logs(app.keep_logs, printed=True)
    _end_output(config.mark)
    serve(app, runner, loop)
    loop.run(lifespan.stop(), context=contextvars.copy_context())
    # Hard, as runners end: a thread that a handler left must not keep the process alive.
    os._exit(0)


class ProcessGlobals:
    """Folder, umask, time zone, locale, signal handlers and limits, as they were when the app had been loaded."""

    def __init__(self) -> None:
        self._first = _look()
        self._threads = threading.active_count()

    def unchanged(self) -> bool:
        """Whether the process is as the first handler found it."""
        return threading.active_count() <= self._threads + MAX_THREADS_LEFT and _look() == self._first


def _look() -> tuple[object, ...]:
    mask = os.umask(0o077)
    os.umask(mask)
    return (
        _folder(),
        mask,
        os.environ.get("TZ"),
        locale.setlocale(locale.LC_ALL),
        [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        [resource.getrlimit(number) for number in _LIMITS],
    )


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


if __name__ == "__main__":
    main()
