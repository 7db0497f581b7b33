"""The user's app of these tests, copied into each test's folder. Its history is kept by Windlass itself."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from windlass import App, Context, Dead, EnqueueFailed, EnqueueUnknown, Fixed, Results, Snooze, WindlassError
from windlass.observe.history import HISTORY_FOLDER, History

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


def show_started(ctx: Context) -> None:
    """For the nemesis: a job is claimed some time before it is in its handler."""
    Path(f"started-{ctx.job.id}").touch()


@app.task
async def long_async(ctx: Context, seconds: float) -> None:
    show_started(ctx)
    await asyncio.sleep(seconds)


@app.task
def long_thread(ctx: Context, seconds: float) -> None:
    show_started(ctx)
    time.sleep(seconds)


@app.task(run_in="process")
def long_process(ctx: Context, seconds: float) -> None:
    show_started(ctx)
    time.sleep(seconds)


@app.task
async def long_talk(ctx: Context, seconds: float) -> None:
    """Many calls at once, on the connection that it shares with its runner."""
    show_started(ctx)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.gather(*(look(ctx.job.id) for _ in range(10)))
        await asyncio.sleep(0.005)


async def look(id_: str) -> None:
    with suppress(WindlassError):
        await app.jobs.aget(id_)


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
    await ctx.progress(1, 2)
    await asyncio.sleep(0.4)
    await ctx.progress(2, 2)


@app.task
async def again_later(ctx: Context) -> None:
    if not ctx.job.snoozes:
        raise Snooze(0.2)


@app.task(retry=SOON)
async def hand_on(ctx: Context, number: int) -> str:
    """Fails if the store does: then it is tried again, and its job is perhaps handed on twice.

    Each attempt of a suspect has a process, and so a failpoint, of its own: in the end it must try twice in one.
    """
    try:
        return (await quick.aenqueue(number)).id
    except (EnqueueFailed, EnqueueUnknown):
        if ctx.job.failures < 3:
            raise
    return (await quick.aenqueue(number)).id


@app.task
def trip(ctx: Context) -> None:
    """Kills its runner, once: a fault like any other, so it is written down like one."""
    if ctx.attempt == 1:
        until = time.monotonic_ns() + 1_000_000_000
        History(Path(os.environ[HISTORY_FOLDER]), "nemesis").write(
            "fault", kind="trip", pids=[os.getpid()], kills=True, until=until
        )
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
def add_one(ctx: Context, number: int) -> int:
    """A link of a chain that counts; that it ran is written down here, whatever the store believes."""
    effects = os.open("effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(effects, f"{ctx.job.id} {ctx.attempt} {number}\n".encode())
    os.close(effects)
    return number + 1


@app.task
async def tally(parts: Results[int]) -> int:
    """What comes after a group: it gets every result."""
    return sum([part or 0 async for part in parts if isinstance(part, int)])


@app.task
def note_end(parts: Results[int]) -> int:
    """What comes after a group in any case."""
    return len(parts)


@app.task
def doomed(ctx: Context) -> int:
    """Dies, and with it the rest of its chain, until it is retried."""
    if ctx.attempt == 1:
        raise Dead("no hope")
    return ctx.attempt
