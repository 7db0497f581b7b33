"""The user's app of these tests, copied into each test's folder: handlers that leave a trace of all they do."""

import asyncio
import os
import time
from pathlib import Path

from windlass import App, Cancel, Context, Dead, Fixed, Retry, Snooze

app = App()
app.queue("images")

# One write per line on a file opened for appending: lines of several processes never mix.
_trace = os.open("effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)


def trace(ctx: Context, kind: str) -> None:
    job = ctx.job
    line = f"{kind} {job.type} {job.id} {ctx.attempt} {os.getpid()} {time.monotonic_ns()}\n"
    os.write(_trace, line.encode())


def is_open(gate: str) -> bool:
    return Path(gate).exists()


@app.task
def quick(ctx: Context) -> None:
    trace(ctx, "start")
    trace(ctx, "end")


@app.task
async def aquick(ctx: Context) -> None:
    trace(ctx, "start")
    trace(ctx, "end")


@app.task
def nap(ctx: Context) -> None:
    trace(ctx, "start")
    time.sleep(0.03)
    trace(ctx, "end")


@app.task
async def anap(ctx: Context) -> None:
    trace(ctx, "start")
    await asyncio.sleep(0.03)
    trace(ctx, "end")


@app.task
def block(ctx: Context, gate: str, size: int = 0) -> str:
    """Deaf: it looks at nothing but its gate. Its result may have a size."""
    trace(ctx, "start")
    while not is_open(gate):
        time.sleep(0.02)
        trace(ctx, "here")
    trace(ctx, "end")
    return "x" * size or "opened"


@app.task
async def ablock(ctx: Context, gate: str, size: int = 0) -> str:
    trace(ctx, "start")
    while not is_open(gate):
        await asyncio.sleep(0.02)
        trace(ctx, "here")
    trace(ctx, "end")
    return "x" * size or "opened"


@app.task
def last_word(ctx: Context, gate: str) -> None:
    """Says something in its very last moment."""
    trace(ctx, "start")
    while not is_open(gate):
        time.sleep(0.01)
    ctx.log("last word")
    ctx.progress(1, 1)
    trace(ctx, "end")


@app.task
def gil_holder(ctx: Context, seconds: float, gate: str) -> None:
    """Holds the interpreter's lock for as long as one C call takes, again and again."""
    trace(ctx, "start")
    end = time.monotonic() + seconds
    while time.monotonic() < end or not is_open(gate):
        sum(range(120_000_000))  # a second or two: longer than a lease in tests
    trace(ctx, "end")


@app.task
def leave_child(ctx: Context) -> None:
    """Forks a child that outlives the runner, as a pool of processes may."""
    trace(ctx, "start")
    if os.fork() == 0:
        while not is_open("gate"):
            time.sleep(0.05)
        os._exit(0)
    while not is_open("gate"):
        time.sleep(0.02)
    trace(ctx, "end")


@app.task(retry=Fixed(attempts=5, base=0.4, jitter=0))
def flaky(ctx: Context, failures: int) -> str:
    trace(ctx, "start")
    if ctx.job.failures < failures:
        raise ValueError(f"failure {ctx.job.failures + 1}")
    trace(ctx, "end")
    return "at last"


@app.task(retry=Fixed(base=0.1, jitter=0))
def doomed(ctx: Context, gate: str) -> None:
    trace(ctx, "start")
    if not is_open(gate):
        raise ValueError("no way")
    trace(ctx, "end")


@app.task
def decide(ctx: Context, what: str) -> str:
    """Decides its own outcome; comes to its end at the second attempt, if there is one."""
    trace(ctx, "start")
    if ctx.attempt == 1:
        match what:
            case "retry":
                raise Retry(after=0.5)
            case "snooze":
                raise Snooze(0.5)
            case "cancel":
                raise Cancel("not needed")
            case "dead":
                raise Dead("hopeless")
    trace(ctx, "end")
    return what


@app.task(queue="images")
def picture(ctx: Context) -> None:
    trace(ctx, "start")
    time.sleep(0.05)
    trace(ctx, "end")


@app.task
def polite(ctx: Context) -> None:
    """Works until it is asked to stop."""
    trace(ctx, "start")
    ctx.progress(1, 4, "a quarter")
    ctx.log("it begins")
    while not ctx.cancelled:
        time.sleep(0.02)
    trace(ctx, "end")
    raise Cancel("asked to stop")


@app.task
def add(ctx: Context, a: int, b: int) -> int:
    trace(ctx, "start")
    trace(ctx, "end")
    return a + b


@app.task
def hand_on(ctx: Context) -> str:
    trace(ctx, "start")
    job = quick.enqueue()
    trace(ctx, "end")
    return job.id


@app.task
async def ahand_on(ctx: Context) -> str:
    trace(ctx, "start")
    job = await quick.aenqueue()
    trace(ctx, "end")
    return job.id
