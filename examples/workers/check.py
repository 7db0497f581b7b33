"""What `windlass check-worker` asks of a worker, in Python:

windlass check-worker -- windlass worker check:app --queues check
"""

import time

from windlass import App, Context, Snooze

app = App()


@app.task(type="check.echo")
async def echo(value: object) -> object:
    return value


@app.task(type="check.fail")
def fail(message: str) -> None:
    raise ValueError(message)


@app.task(type="check.slow", run_in="process")
def slow(seconds: float) -> str:
    time.sleep(seconds)
    return "done"


@app.task(type="check.progress")
async def progress(ctx: Context) -> None:
    await ctx.progress(1, 2)
    await ctx.log("half")


@app.task(type="check.snooze")
async def snooze(ctx: Context) -> None:
    if ctx.attempt == 1:
        raise Snooze(0.1)
