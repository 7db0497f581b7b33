"""run_all: run everything that is due, in this process, one job at a time."""

import asyncio
import contextvars
from contextlib import AsyncExitStack, ExitStack
from copy import copy
from typing import Unpack

from windlass.client.app import App
from windlass.client.runtime.portal import refuse_on_loop
from windlass.core.events import silent
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import Outcome
from windlass.core.moments import SECOND
from windlass.testing.inline_runner import RunOptions, inline_runner
from windlass.testing.report import Report
from windlass.worker.handlers.attempt import run_sync
from windlass.worker.handlers.hooks import Lifespan
from windlass.worker.handlers.start import run_attempt
from windlass.worker.handlers.work import Halt, Work


def run_all(app: App, **options: Unpack[RunOptions]) -> Report:
    """Run every due job, and those they enqueue, until nothing is due; returns a report.

    Jobs are claimed, run, decided and settled as by a worker. Handlers run one at a time, best first: `def` in this
    thread, `async def` on an event loop of their own, `run_in="process"` like the others. Start and stop hooks run
    once around it all; what they or an `on_dead` hook raise is raised here.

    It also runs what is due on a real store, of which the test is the only worker; a live worker is refused. There
    time is real: a delayed job waits, unless `app.jobs.run_now(job.id)` makes it due.
    """
    refuse_on_loop("run_all")
    inline, hooks, wait = inline_runner(app, options), AppHooks(app), app._portal().run
    # A factory, so that the thread's own event loop is not touched.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner, ExitStack() as after:
        wait(inline.begin())
        after.callback(lambda: wait(inline.end()))
        runner.run(hooks.start())
        after.callback(lambda: runner.run(hooks.stop()))
        while (work := wait(inline.take())) is not None:
            if work.definition.is_async:
                outcome = runner.run(_run_async(work))
            else:
                outcome = contextvars.copy_context().run(run_sync, work)
            if (dead := wait(inline.settle(work, outcome))) is not None:
                runner.run(hooks.dead(dead))
        return wait(inline.report())


async def arun_all(app: App, **options: Unpack[RunOptions]) -> Report:
    """`run_all` for asynchronous tests: `async def` handlers run on this loop, `def` handlers in a thread."""
    inline, hooks = inline_runner(app, options), AppHooks(app)
    async with AsyncExitStack() as after:
        await inline.begin()
        after.push_async_callback(inline.end)
        await hooks.start()
        after.push_async_callback(hooks.stop)
        while (work := await inline.take()) is not None:
            outcome = await (_run_async(work) if work.definition.is_async else asyncio.to_thread(run_sync, work))
            if (dead := await inline.settle(work, outcome)) is not None:
                await hooks.dead(dead)
        return await inline.report()


async def _run_async(work: Work) -> Outcome:
    """Run the handler in a task of its own, which is cancelled at its timeout."""
    timeout = work.claimed.timeout
    timer = asyncio.get_running_loop().call_later(timeout / SECOND, _stop, work) if timeout else None
    try:
        return await run_attempt(work)
    finally:
        if timer is not None:
            timer.cancel()


def _stop(work: Work) -> None:
    work.halt(Halt.TIMEOUT)
    if work.task is not None:
        work.task.cancel()


class AppHooks:
    """Calls hooks as a runner does, around one `run_all`, with a copy of the state."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._before = app.state
        self._lifespan = Lifespan(app, silent)

    async def start(self) -> None:
        self._app.state = copy(self._before)
        try:
            await self._lifespan.start()
        except BaseException:
            self._app.state = self._before
            raise

    async def dead(self, job: Job) -> None:
        for hook in self._app.hooks.dead:
            await self._lifespan.call(hook, job, self._app.state)

    async def stop(self) -> None:
        """All of them, even if one raises; then the first error is raised."""
        errors: list[Exception] = []
        try:
            for hook in reversed(self._app.hooks.stop):
                try:
                    await self._lifespan.call(hook, self._app.state)
                except Exception as error:
                    errors.append(error)
        finally:
            self._app.state = self._before
        if errors:
            raise errors[0]
