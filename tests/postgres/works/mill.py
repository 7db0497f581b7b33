"""The user's app of these tests, copied into each test's folder: handlers that leave their job's id in a file."""

import asyncio
import os

from windlass import App, Context

app = App()
app.queue("other")

# One write per line on a file opened for appending: lines of several processes never mix.
_effects = os.open("effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)


def trace(ctx: Context) -> None:
    os.write(_effects, f"{ctx.job.id}\n".encode())


@app.task
async def quick(ctx: Context) -> None:
    trace(ctx)


@app.task
async def linger(ctx: Context, until: str) -> None:
    """Runs until there is a file of this name."""
    trace(ctx)
    while not os.path.exists(until):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)


@app.task
def thread(ctx: Context) -> None:
    trace(ctx)


@app.task(queue="other")
async def elsewhere(ctx: Context) -> None:
    trace(ctx)


@app.task
async def parent(ctx: Context) -> None:
    trace(ctx)
    await quick.aenqueue()


@app.task
def thread_parent(ctx: Context) -> None:
    trace(ctx)
    quick.enqueue()


@app.task(run_in="process")
def cell_parent(ctx: Context) -> None:
    trace(ctx)
    quick.enqueue()
