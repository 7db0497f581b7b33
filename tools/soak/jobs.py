"""The app of the soak: jobs of every kind. Each attempt writes into the ledger that it began and how it ended."""

import asyncio
import os
import time
from collections.abc import Iterator

from windlass import App, Context, Fixed, Snooze

app = App(os.environ["WINDLASS_STORE"], blobs=os.environ["SOAK_BLOBS"], deadline=20)
SOON = Fixed(attempts=2, base=1.0)
KEEP = float(os.environ["SOAK_RETENTION"])
LEDGER = os.open(os.environ["SOAK_LEDGER"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

RETENTION = {"completed": KEEP, "cancelled": KEEP, "dead": 1.5 * KEEP}
app.queue("default", retention=RETENTION)
app.queue("other", retention=RETENTION)
app.queue("limited", retention=RETENTION, max_concurrency=4, rate_limit="50/s")
app.queue("fair", retention=RETENTION, fair=True)


@app.middleware
def written(ctx: Context) -> Iterator[None]:
    """One line when an attempt begins, one when its handler ends."""
    _write("began", ctx)
    try:
        yield
    except BaseException:
        _write("failed", ctx)
        raise
    _write("done", ctx)


def _write(word: str, ctx: Context) -> None:
    line = f"{word} {ctx.job.id} {ctx.attempt} {os.getpid()} {os.getppid()} {ctx.job.type}\n"
    os.write(LEDGER, line.encode())


@app.task
async def quick(number: int) -> int:
    return number


@app.task
def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@app.task
async def pause(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


@app.task(run_in="process")
def apart(number: int) -> int:
    return number


@app.task(retry=SOON)
def flaky(ctx: Context) -> str:
    """Fails once."""
    if not ctx.job.failures:
        raise ValueError("the first attempt fails")
    return "second attempt"


@app.task(retry=SOON)
def doomed() -> None:
    """Becomes a dead letter."""
    raise ValueError("every attempt fails")


@app.task
async def talk(ctx: Context) -> str:
    """Leaves log lines and progress."""
    ctx.progress(1, 2)
    ctx.log("half of it")
    await asyncio.sleep(0.02)
    ctx.progress(2, 2)
    return "said"


@app.task
async def snooze(ctx: Context) -> int:
    if not ctx.job.snoozes:
        raise Snooze(1)
    return ctx.job.snoozes


@app.task
async def parent(ctx: Context) -> str:
    return (await ctx.aenqueue(quick.job(1))).id


@app.task
async def large(text: str) -> str:
    """Argument and result are kept as blobs."""
    return text[::-1]


@app.task
def add_one(number: int) -> int:
    return number + 1


@app.schedule(every="5s")
@app.task
async def tick() -> str:
    return "tick"


@app.schedule(every="20s", jitter=5)
@app.task(queue="other")
def slow_tick() -> str:
    return "tick"
