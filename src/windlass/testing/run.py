"""run_all: everything that is due runs here and now, and nothing else goes on meanwhile."""

import asyncio
import contextvars
from contextlib import AsyncExitStack, ExitStack
from typing import Unpack

from windlass.client.app import App
from windlass.client.blocking import refuse_on_loop
from windlass.core.moments import SECOND
from windlass.core.outcome import Outcome
from windlass.testing.hand import Hand, RunOptions
from windlass.testing.hooks import Life
from windlass.testing.report import Report
from windlass.worker.run import run_async, run_sync
from windlass.worker.work import Halt, Work


def run_all(app: App, **options: Unpack[RunOptions]) -> Report:
    """Run every job that is due, and those they hand in, until nothing is due; what became of them.

    The way of a job is that of a worker: claimed, run, decided, settled. Handlers run one at a time, best first:
    `def` here in this thread, `async def` on a loop of their own, `run_in="process"` like the others. Start and stop
    hooks run once round it all; what they or an `on_dead` hook raise is raised here.
    """
    refuse_on_loop("run_all")
    hand, life, wait = Hand(app, **options), Life(app), app._portal().run
    # A factory, so that the thread's own event loop is left as it is.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner, ExitStack() as after:
        wait(hand.begin())
        after.callback(lambda: wait(hand.end()))
        runner.run(life.start())
        after.callback(lambda: runner.run(life.stop()))
        while (work := wait(hand.take())) is not None:
            if work.definition.is_async:
                outcome = runner.run(_run_async(work))
            else:
                outcome = contextvars.copy_context().run(run_sync, work)
            if (dead := wait(hand.settle(work, outcome))) is not None:
                runner.run(life.dead(dead))
        return wait(hand.report())


async def arun_all(app: App, **options: Unpack[RunOptions]) -> Report:
    """`run_all` for asynchronous tests: `async def` handlers run on this loop, `def` handlers in a thread."""
    hand, life = Hand(app, **options), Life(app)
    async with AsyncExitStack() as after:
        await hand.begin()
        after.push_async_callback(hand.end)
        await life.start()
        after.push_async_callback(life.stop)
        while (work := await hand.take()) is not None:
            outcome = await (_run_async(work) if work.definition.is_async else asyncio.to_thread(run_sync, work))
            if (dead := await hand.settle(work, outcome)) is not None:
                await life.dead(dead)
        return await hand.report()


async def _run_async(work: Work) -> Outcome:
    """Run the handler in a task of its own, which is told to end at its timeout."""
    handler = asyncio.create_task(run_async(work))

    def stop() -> None:
        work.halt(Halt.TIMEOUT)
        handler.cancel()

    timeout = work.claimed.timeout
    timer = asyncio.get_running_loop().call_later(timeout / SECOND, stop) if timeout else None
    try:
        outcome = await handler
    finally:
        if timer is not None:
            timer.cancel()
    # Whoever cancels the test means the test; the handler has made an outcome of it, as it does in a worker.
    if (test := asyncio.current_task()) is not None and test.cancelling():
        raise asyncio.CancelledError
    return outcome
