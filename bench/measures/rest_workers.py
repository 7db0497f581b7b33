"""Workers over REST: the drain of a worker in Node, and the cost of many waiting claims."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import msgspec

from bench.context import BenchContext
from bench.measures.drain import drain
from bench.report.figures import Base, Row, Section, Target, bars
from bench.rest_server import END_OF_HEAD, Server, read_head, served
from bench.targets import at_most
from bench.worker import fill
from windlass.bench.process import BenchFailed

SCRIPT = Path(__file__).parents[1] / "rest_worker.mjs"
WAIT = 30.0
SETTLE_SECONDS = 3.0
"""Seconds from the registration of the last worker until its claim waits."""
_CALLS = re.compile(r"^windlass_store_call_seconds_count\{[^}]*\} ([0-9.]+)", re.MULTILINE)


class Rates(msgspec.Struct):
    """Of each round."""

    node: list[float] = []
    native: list[float] = []
    cpu: list[float] = []
    idle: list[float] = []
    calls: list[float] = []


def measure(context: BenchContext) -> Section:
    """A native runner and the worker in Node, in turn; then claims that wait."""
    rates = Rates()
    for _ in context.rounds("rest-workers"):
        if shutil.which("node") is not None:
            rates.native.append(drain(context)[0])
            _node(context, rates)
        _idle(context, rates)
    return _section(context, rates)


def _node(context: BenchContext, rates: Rates) -> None:
    jobs = context.scale.drain
    with context.store() as address:
        fill(address, jobs)
        with served(address) as server:
            environment = {
                **os.environ,
                "WINDLASS_SERVER": f"http://127.0.0.1:{server.port}",
                "WINDLASS_TOKEN": server.headers["authorization"].removeprefix("Bearer "),
            }
            used = server.usage().cpu
            subprocess.run(["node", str(SCRIPT)], env=environment, check=True)
            rates.cpu.append(max(1.0, (server.usage().cpu - used) / jobs * 1e6))
        span = context.store_bench.span(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{jobs} jobs were enqueued, {span.jobs} were completed")
    rates.node.append(span.rate)


def _idle(context: BenchContext, rates: Rates) -> None:
    with context.store() as address, served(address) as server:
        cpu, calls = asyncio.run(_poll(context, server))
        rates.idle.append(cpu)
        rates.calls.append(calls)


async def _poll(context: BenchContext, server: Server) -> tuple[float, float]:
    """The share of a core, and store calls per second, while claims wait for jobs that never come."""
    tasks = [asyncio.create_task(_wait(server, number)) for number in range(context.scale.polls)]
    while await asyncio.to_thread(_open_workers, server) < len(tasks):  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    await asyncio.sleep(SETTLE_SECONDS)
    used, calls, began = server.usage().cpu, await asyncio.to_thread(_store_calls, server), time.perf_counter()
    await asyncio.sleep(context.scale.idle_seconds)
    seconds = time.perf_counter() - began
    cpu = (server.usage().cpu - used) / seconds * 100
    made = (await asyncio.to_thread(_store_calls, server) - calls) / seconds
    for task in tasks:
        task.cancel()
    for found in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(found, Exception):
            raise found
    return cpu, made


async def _wait(server: Server, number: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    body = {"worker": f"w{number}", "claim": 1, "queues": ["default"], "types": ["noop"], "wait": WAIT}
    writer.write(server.request("POST", "/claims", 200, body).text)
    try:
        status, length = read_head(await reader.readuntil(END_OF_HEAD))
        if status != 200:
            raise BenchFailed(f"a claim was answered with {status}: {(await reader.readexactly(length))!r:.200}")
    finally:
        writer.close()


def _open_workers(server: Server) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/v1/workers", headers=server.headers)
    with urllib.request.urlopen(request) as answer:
        return len(json.load(answer)["workers"])


def _store_calls(server: Server) -> float:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/metrics", headers=server.headers)
    with urllib.request.urlopen(request) as answer:
        return sum(map(float, _CALLS.findall(answer.read().decode())))


def _section(context: BenchContext, rates: Rates) -> Section:
    rows = []
    if rates.node:
        drained = Row(
            name="a worker in Node, batches of 100",
            unit="jobs/s",
            rounds=rates.node,
            base=Base("a native runner", rates.native),
            target=Target(0.25),
        )
        rows = [drained, Row(name="processor of the server", unit="us per job", rounds=rates.cpu)]
    idle = [
        Row(
            name=f"{context.scale.polls:,} waiting claims",
            unit="% of a core",
            rounds=rates.idle,
            target=at_most(10.0),
        ),
        Row(name="store calls meanwhile", unit="calls/s", rounds=rates.calls, target=at_most(20.0)),
    ]
    return Section(
        name="rest-workers",
        title=f"Workers over REST: {context.scale.drain:,} no-ops by Node, {context.scale.polls:,} waiting claims",
        rows=[*rows, *idle],
        charts=[bars("Jobs per second, durably completed", rows[:1])] if rows else [],
        notes=[
            "The worker in Node settles a batch with the call that claims the next, on two connections."
            if rows
            else "The worker in Node was not run: no Node here.",
            "Every waiting claim is that of a worker of its own, so the server renews their leases meanwhile.",
        ],
    )
