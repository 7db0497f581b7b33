"""Handlers in processes of their own that enqueue: one returns, one is killed."""

import os
import signal

from shop import app, quick  # type: ignore[import-not-found]

from windlass import Context


@app.task(run_in="process")  # type: ignore[untyped-decorator]
def spread(ctx: Context, jobs: int) -> None:
    for _ in range(jobs):
        quick.enqueue()


@app.task(run_in="process")  # type: ignore[untyped-decorator]
def spread_and_die(ctx: Context, jobs: int) -> None:
    spread(ctx, jobs)
    os.kill(os.getpid(), signal.SIGKILL)
