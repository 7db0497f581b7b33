"""A process that runs a job, and kills itself at one step of the handler."""

import asyncio
import os
import select
import shutil
import signal
import sys
import threading
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import msgspec

from windlass.client.app import App
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.tasks.context import Context
from windlass.client.tasks.middleware import middleware_of
from windlass.core.jobs.job import NewJob
from windlass.core.status import Status
from windlass.errors import JobNotFound
from windlass.store.clock import ManualClock
from windlass.store.open import open_store
from windlass.testing.effects import Effects
from windlass.testing.run import run_all

MAX_SECONDS = 60.0
"""Max time of one attempt in its process."""
MAX_MESSAGE = 65_536
MAX_PROBLEM = 1_000
FILE = "jobs.db"


class Step(msgspec.Struct, frozen=True):
    """A step of the handler: when, relative to which line."""

    when: str
    file: str
    line: int


class Ended(msgspec.Struct, frozen=True):
    """The report of a process: the step at which it killed itself, or how the job ended, or an error of Windlass."""

    killed: Step | None = None
    problem: str | None = None
    """None: the job completed."""
    failure: str | None = None


class Rules(msgspec.Struct, frozen=True):
    """The rules that say what counts as a step."""

    files: frozenset[str]
    """Their lines are steps."""
    visits: int
    """How many times the same step counts."""


def make_store(folder: Path) -> None:
    """An empty store in this folder, to be copied; also loads the modules that every process needs."""
    asyncio.run(_make_store(folder))


async def _make_store(folder: Path) -> None:
    store = open_store(_address(folder))
    await store.migrate()
    await store.close()


def copy_store(folder: Path, copy: Path) -> None:
    """Copy a store that no process has open."""
    copy.mkdir()
    shutil.copyfile(folder / FILE, copy / FILE)


def _address(folder: Path) -> str:
    return f"sqlite:///{folder / FILE}?durability=relaxed"


def run_process(app: App, job: NewJob, folder: Path, rules: Rules, kill_at: int | None) -> Ended:
    """Run the job, and all that it enqueues, in a forked process that kills itself at the step `kill_at`.

    A process, because nothing else is a kill: no `except` or `finally` runs, connections close, transactions end.
    """
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads at a fork: the app opens its store anew
        child = os.fork()
    if child == 0:
        os.close(reads)
        _run(app, job, folder, Steps(job.id, rules, kill_at, writes))
    os.close(writes)
    try:
        ready, _, _ = select.select([reads], [], [], MAX_SECONDS)
        said = os.read(reads, MAX_MESSAGE) if ready else b""
        if not said:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(reads)
        _, status = os.waitpid(child, 0)
    if not said:
        problem = f"ended by itself, with the status {status}" if ready else f"took longer than {MAX_SECONDS:.0f} s"
        raise RuntimeError(f"the process of the crash test {problem}")
    ended = msgspec.json.decode(said, type=Ended)
    if ended.failure is not None:
        raise RuntimeError(f"the process of the crash test failed:\n{ended.failure}")
    return ended


def _run(app: App, job: NewJob, folder: Path, steps: "Steps") -> NoReturn:
    """The whole program of the forked process."""
    try:
        clock = ManualClock()
        app._store_handle = StoreHandle(lambda: _address(folder), lambda url: open_store(url, clock=clock), clock)
        steps.surround(app)
        app.enqueue_many([job])  # with the same id in each process: the second finds it
        run_all(app, advance=True)
        steps.report(Ended(problem=_problem(app, job)))
    except BaseException:
        steps.report(Ended(failure=traceback.format_exc()[-8_000:]))
    finally:
        os._exit(0)


def _problem(app: App, job: NewJob) -> str | None:
    """How the job ended, unless it completed."""
    try:
        found = app.jobs.get(job.id)
    except JobNotFound as error:  # its queue keeps no finished jobs
        return None if error.outcome == Status.COMPLETED else f"the job ended: {error.outcome}"
    if found.status is Status.COMPLETED:
        return None
    error_ = "" if found.error is None else f": {found.error.type}: {found.error.message}"
    return f"the job is {found.status}, {found.reason}{error_}"[:MAX_PROBLEM]


class Steps:
    """Counts the steps of a job's first attempt, and kills this process at one of them."""

    def __init__(self, job: str, rules: Rules, kill_at: int | None, pipe: int) -> None:
        self._job = job
        self._rules = rules
        self._kill_at = kill_at
        self._pipe = pipe
        self._number = 0
        self._visits: Counter[Step] = Counter()

    def report(self, ended: Ended) -> None:
        os.write(self._pipe, msgspec.json.encode(ended))

    def surround(self, app: App) -> None:
        """A middleware round every attempt, outside of all others: their lines may be steps too."""
        if self._kill_at is None:
            return

        async def run_async(ctx: Context, call_next: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
            if not self._begins(ctx):
                return await call_next()
            try:
                return await self._drive(call_next())
            finally:
                self._end()

        def run_plain(ctx: Context, call_next: Callable[[], Any]) -> Any:
            if not self._begins(ctx):
                return call_next()
            try:
                return call_next()
            finally:
                self._end()

        for function in (run_async, run_plain):
            app.registry.surround(middleware_of(function, skip_others=True), outermost=True)

    def _begins(self, ctx: Context) -> bool:
        concerned = ctx.job.id == self._job and ctx.attempt == 1
        if concerned:
            threading.settrace(self._trace)
            sys.settrace(self._trace)
        return concerned

    def _end(self) -> None:
        sys.settrace(None)
        self._reach(Step("after the handler, before its outcome is stored", "", 0))

    def _reach(self, reached: Step) -> None:
        self._visits[reached] += 1
        if self._visits[reached] > self._rules.visits:
            return
        self._number += 1
        if self._number == self._kill_at:
            self.report(Ended(killed=reached))
            os.kill(os.getpid(), signal.SIGKILL)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is Effects.__call__.__code__:
            return self._trace_effect
        return self._trace_line if frame.f_code.co_filename in self._rules.files else None

    def _trace_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._reach(Step("before", frame.f_code.co_filename, frame.f_lineno))
        return self._trace_line

    def _trace_effect(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return":
            name, caller = frame.f_locals["name"], self._nearest(frame.f_back)
            self._reach(Step(f"after the effect {name!r}", *caller))
        return self._trace_effect

    def _nearest(self, frame: FrameType | None) -> tuple[str, int]:
        while frame is not None and frame.f_code.co_filename not in self._rules.files:
            frame = frame.f_back
        return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    @types.coroutine
    def _drive(self, handler: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Await the handler; each suspension and each return from one is a step."""
        step, value = handler.send, None
        while True:
            try:
                awaited = step(value)
            except StopIteration as end:
                return end.value
            suspended = self._waits_at(handler)
            self._reach(Step("while it awaits in", *suspended))
            try:
                value = yield awaited
                step = handler.send
            except BaseException as error:
                value, step = error, handler.throw
            self._reach(Step("after it awaited in", *suspended))

    def _waits_at(self, handler: Any) -> tuple[str, int]:
        """The innermost line of a file of the app at which it is suspended."""
        found = ("", 0)
        while (frame := getattr(handler, "cr_frame", None)) is not None:
            if frame.f_code.co_filename in self._rules.files:
                found = (frame.f_code.co_filename, frame.f_lineno)
            handler = handler.cr_await
        return found
