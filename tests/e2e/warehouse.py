"""An app with large payloads and results, copied into a test's folder."""

import os
from hashlib import sha256
from typing import Any

from windlass import App, Context, Fixed

app = App(blobs="./blobs")


def _weigh(ctx: Context, cargo: str, times: int) -> dict[str, Any]:
    assert ctx.job.payload["cargo"] == cargo
    return {"digest": sha256(cargo.encode()).hexdigest(), "back": cargo * times, "pid": os.getpid()}


@app.task(type="on.the.loop")
async def on_the_loop(ctx: Context, cargo: str, times: int = 1) -> dict[str, Any]:
    return _weigh(ctx, cargo, times)


@app.task(type="in.a.thread", retry=Fixed(base=0.1, jitter=0))
def in_a_thread(ctx: Context, cargo: str, times: int = 1) -> dict[str, Any]:
    return _weigh(ctx, cargo, times)


@app.task(type="in.a.process", run_in="process")
def in_a_process(ctx: Context, cargo: str, times: int = 1) -> dict[str, Any]:
    return _weigh(ctx, cargo, times)


@app.task(type="async.in.a.process", run_in="process")
async def async_in_a_process(ctx: Context, cargo: str, times: int = 1) -> dict[str, Any]:
    return _weigh(ctx, cargo, times)
