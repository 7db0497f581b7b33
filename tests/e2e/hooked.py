"""An app with hooks, middleware and a task set, copied into each test's folder; hooks leave lines in a file."""

import asyncio
import logging
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from errands import errands  # type: ignore[import-not-found]

from windlass import App, Context, Dead, Job, State, current_job

logging.basicConfig(level=logging.INFO, format="%(levelname)s [%(windlass_job_id)s] %(message)s", filename="app.log")
logger = logging.getLogger("hooked")
app = App()
app.include(errands)

_hooks = os.open("hooks", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)


def tell(*what: object) -> None:
    os.write(_hooks, (" ".join(map(str, (os.getpid(), *what))) + "\n").encode())


def is_there(name: str) -> bool:
    return Path(name).exists()


@app.on_start
async def open_pool(state: State) -> None:
    if is_there("no-pool"):
        raise ConnectionError("the pool is out of reach")
    state.loop = asyncio.get_running_loop()
    state.pool = f"pool of {os.getpid()}"
    tell("start pool")


@app.on_start
def open_client(state: State) -> None:
    state.client = f"client beside {state.pool}"
    tell("start client")


@app.on_stop
async def close_pool(state: State) -> None:
    assert asyncio.get_running_loop() is state.loop
    tell("stop pool")


@app.on_stop
def close_client(state: State) -> None:
    tell("stop client", state.client)
    if is_there("hang"):
        time.sleep(3600)
    raise ValueError("it would not close")


@app.on_dead
def alert(job: Job, state: State) -> None:
    tell("dead", job.type, job.reason, state.pool)
    raise ValueError("nobody to alert")


@app.middleware
def noted(ctx: Context) -> Generator[None, Any, Any]:
    try:
        result = yield
    except Dead:
        tell("saw dead", ctx.job.id)
        raise
    tell("saw", ctx.job.id)
    return {"round": result} if isinstance(result, dict) else None


def look(ctx: Context) -> dict[str, Any]:
    job = current_job()
    logger.info("looking %s", job.type)
    return {"pid": os.getpid(), "pool": ctx.state.pool, "client": ctx.state.client, "id": job.id, "type": job.type}


@app.task(type="async", aliases=["old.async"])
async def look_async(ctx: Context) -> dict[str, Any]:
    assert asyncio.get_running_loop() is ctx.state.loop
    child = await ctx.aenqueue(end)
    return {**look(ctx), "child": child.id}


@app.task(type="thread", aliases=["old.thread"])
def look_thread(ctx: Context) -> dict[str, Any]:
    return {**look(ctx), "child": ctx.enqueue(end.job()).id}


@app.task(type="process", aliases=["old.process"], run_in="process")
def look_process(ctx: Context) -> dict[str, Any]:
    return {**look(ctx), "child": ctx.enqueue(end).id}


@app.task(type="aprocess", aliases=["old.aprocess"], run_in="process")
async def look_aprocess(ctx: Context) -> dict[str, Any]:
    assert asyncio.get_running_loop() is ctx.state.loop
    child = await ctx.aenqueue(end.job())
    return {**look(ctx), "child": child.id}


@app.task
def end() -> None: ...


@app.task(type="dead.async")
async def die_async() -> None:
    raise Dead("on the loop")


@app.task(type="dead.thread", max_attempts=1)
def die_thread() -> None:
    raise Dead("in a thread")


@app.task(type="dead.process", run_in="process")
def die_process() -> None:
    raise Dead("in a process")


@app.task(type="sleep.async")
async def sleep_async(ctx: Context) -> None:
    tell("asleep", ctx.job.id)
    await ctx.sleep(3600)


@app.task(type="sleep.thread")
def sleep_thread(ctx: Context) -> None:
    tell("asleep", ctx.job.id)
    ctx.sleep(3600)


@app.task(type="sleep.process", run_in="process")
def sleep_process(ctx: Context) -> None:
    tell("asleep", ctx.job.id)
    ctx.sleep(3600)


@app.task(type="sleep.aprocess", run_in="process")
async def sleep_aprocess(ctx: Context) -> None:
    tell("asleep", ctx.job.id)
    await ctx.sleep(3600)
