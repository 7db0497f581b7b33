"""Starts handlers: `async def` in an asyncio task each, `def` in dedicated threads."""

import asyncio
import contextlib
import contextvars
import functools
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from windlass.core.jobs.outcome import Outcome, Raised
from windlass.worker.handlers.attempt import halted, report, run_async, run_sync
from windlass.worker.handlers.work import Work

Run = Callable[[Work], Coroutine[Any, Any, Outcome]]
"""Runs an attempt and keeps its outcome with the work: a task with a pending cancellation counts as cancelled."""
Ended = Callable[[Work, Outcome], None]
STARTS_EAGERLY = sys.version_info >= (3, 12)
"""Whether a handler runs, up to its first wait, while it is started."""


def start_attempt(work: Work, context: Context, ended: Ended, run: Run = run_async) -> None:
    """Run an attempt in a new task; `ended` is called once that task is done, however it ends.

    Where Python can start a task eagerly, a handler that never waits has ended when this returns.
    """
    loop, name = asyncio.get_running_loop(), f"{work.claimed.type} {work.claimed.id}"
    task: asyncio.Task[Outcome]
    if loop.get_task_factory() is not None:
        # An app may have set a task factory, for example to trace tasks: then it makes these tasks too.
        task = loop.create_task(run(work), name=name, context=context)
    elif sys.version_info >= (3, 12):
        task = asyncio.Task(run(work), loop=loop, name=name, context=context, eager_start=True)
    else:
        task = asyncio.Task(run(work), loop=loop, name=name, context=context)
    if task.done():
        _report(work, ended, task)
    else:
        work.task = task
        task.add_done_callback(functools.partial(_report, work, ended))


async def run_attempt(work: Work) -> Outcome:
    """`start_attempt`, waited for; cancelling the wait cancels the handler and waits for its end."""
    outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def keep(_: Work, found: Outcome) -> None:
        if not outcome.done():
            outcome.set_result(found)

    start_attempt(work, copy_context(), keep)
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        if work.task is not None:
            work.task.cancel()
        await outcome
        raise


def _report(work: Work, ended: Ended, task: asyncio.Task[Outcome]) -> None:
    work.task = None
    outcome = work.outcome
    if outcome is None:
        # Cancelled before its first step, or an error of Windlass: `run_async` has an outcome for all errors of
        # handlers.
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        assert error is not None
        outcome = halted(work) or Raised(error, report(error))
    ended(work, outcome)


class Threads:
    """Runs handlers and reports their outcomes to the loop, with one wake-up for all gathered outcomes."""

    def __init__(self, most: int, ended: Callable[[Work, Outcome], None]) -> None:
        self._most = most
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._outcomes: deque[tuple[Work, Outcome]] = deque()
        self._notified = False
        self._busy = 0
        self._count = 0

    def make_ready(self) -> None:
        """Have a thread for the next job, if another is allowed. RuntimeError: the system has no more threads."""
        if self._busy >= self._count and self._count < self._most:
            # Daemons: a handler that never returns must not keep the process from ending.
            threading.Thread(target=self._serve, name=f"windlass-slot-{self._count + 1}", daemon=True).start()
            self._count += 1

    def put(self, work: Work) -> None:
        """Run it in a thread; the caller makes sure that a slot is free and a thread ready."""
        self._busy += 1
        self._waiting.put(work)

    def close(self) -> None:
        """End each thread when it is idle."""
        for _ in range(self._count):
            self._waiting.put(None)

    def _serve(self) -> None:
        while (work := self._waiting.get()) is not None:
            self._outcomes.append((work, _run(work)))
            if not self._notified:
                self._notified = True
                with contextlib.suppress(RuntimeError):  # the handler has outlived the event loop
                    self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        # Cleared before reading: an outcome that arrives during the read calls again.
        self._notified = False
        while self._outcomes:
            work, outcome = self._outcomes.popleft()
            self._busy -= 1
            self._ended(work, outcome)


def _run(work: Work) -> Outcome:
    """Run in a new context: what a handler sets must not be there for the next one."""
    try:
        return contextvars.Context().run(run_sync, work)
    except BaseException as error:
        # An error of Windlass: `run_sync` has an outcome for all errors of handlers. The thread and its slot go on.
        return Raised(error, report(error))
