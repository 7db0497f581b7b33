"""The user's app of these tests, copied into each test's folder. Its history is kept by Windlass itself."""

import asyncio
import os
import signal
import time
from pathlib import Path

from windlass import App, Context, Dead, Fixed, Snooze
from windlass.observe.history import SWITCH, History

app = App(os.environ["WINDLASS_STORE"], deadline=30)


@app.task
async def quick(number: int) -> int:
    return number


@app.task
def nap(seconds: float) -> None:
    time.sleep(seconds)


@app.task
async def anap(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.task(run_in="process")
def apart(number: int) -> int:
    return number


SOON = Fixed(attempts=1000, base=0.2, jitter=0)


@app.task(retry=SOON)
def flaky(ctx: Context, failures: int) -> str:
    if ctx.job.failures < failures:
        raise ValueError(f"failure {ctx.job.failures + 1}")
    return "at last"


@app.task
async def talk(ctx: Context) -> None:
    """Says something while it runs, so that there are notes to be written."""
    ctx.progress(1, 2)
    await asyncio.sleep(0.4)
    ctx.progress(2, 2)


@app.task
async def again_later(ctx: Context) -> None:
    if not ctx.job.snoozes:
        raise Snooze(0.2)


@app.task(retry=SOON)
async def hand_on(number: int) -> str:
    """Fails if the store does: then it is tried again, and its job is perhaps handed on twice."""
    return (await quick.aenqueue(number)).id


@app.task
def trip(ctx: Context) -> None:
    """Kills its runner, once: a fault like any other, so it is written down like one."""
    if ctx.attempt == 1:
        until = time.monotonic_ns() + 1_000_000_000
        History(Path(os.environ[SWITCH]), "nemesis").write("fault", kind="trip", pids=[os.getpid()], until=until)
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
def add_one(ctx: Context, number: int) -> int:
    """A link of a chain that counts; that it ran is written down here, whatever the store believes."""
    effects = os.open("effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(effects, f"{ctx.job.id} {ctx.attempt} {number}\n".encode())
    os.close(effects)
    return number + 1


@app.task
def doomed(ctx: Context) -> int:
    """Dies, and with it the rest of its chain, until somebody tries it again."""
    if ctx.attempt == 1:
        raise Dead("no hope")
    return ctx.attempt
