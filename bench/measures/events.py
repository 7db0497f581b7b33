"""Events: how soon many listeners of one server receive an event, and what they cost the server."""

import asyncio
import time

from bench.context import BenchContext
from bench.report.figures import Row, Section
from bench.rest_server import Server, served
from bench.targets import at_most
from windlass.client.app import App

LISTENERS = 1_000
JOBS = 20
"""Jobs that end one after the other; every listener has an event before the next job ends."""
HEARD_SECONDS = 60.0


def measure(context: BenchContext) -> Section:
    """Jobs end one after the other, and every listener records when it receives each event."""
    median: list[float] = []
    worst: list[float] = []
    cpu: list[float] = []
    for _ in context.rounds("events"):
        with context.store() as address, served(address) as server:
            took, used = asyncio.run(_listen(address, server))
            median.append(took[len(took) // 2] * 1000)
            worst.append(took[-1] * 1000)
            cpu.append(used * 1e6 / (LISTENERS * JOBS))
    rows = [
        Row(name="median", unit="ms", rounds=median),
        Row(name="the last listener", unit="ms", rounds=worst, target=at_most(1_000.0)),
        Row(name="processor of the server", unit="us per event and listener", rounds=cpu),
    ]
    return Section(
        name="events",
        title=f"Events: {LISTENERS:,} listeners of one server, {JOBS} jobs",
        rows=rows,
        charts=[],
        notes=["From before the call that ends a job to the event at a listener; the listeners are one process."],
    )


async def _listen(address: str, server: Server) -> tuple[list[float], float]:
    """How long after the end of its job each event came, in order, and the seconds of processor time."""
    app = App(address)
    heard: list[float] = []
    began = 0.0
    all_heard = asyncio.Event()

    async def listen(opened: asyncio.Semaphore) -> None:
        async with opened:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(server.request("GET", "/events?event=job.cancelled", 200).text)
            await reader.readuntil(b"retry: 1000")
        ready.release()
        try:
            while True:
                await reader.readuntil(b"event: job.cancelled")
                heard.append(time.perf_counter() - began)
                if len(heard) % LISTENERS == 0:
                    all_heard.set()
        finally:
            writer.close()

    ready = asyncio.Semaphore(0)
    gate = asyncio.Semaphore(50)
    tasks = [asyncio.create_task(listen(gate)) for _ in range(LISTENERS)]
    async with asyncio.timeout(HEARD_SECONDS):
        for _ in range(LISTENERS):
            await ready.acquire()
    jobs = [await app.aenqueue("noop", {}, delay="1h") for _ in range(JOBS)]
    used = server.usage().cpu
    for job in jobs:
        all_heard.clear()
        began = time.perf_counter()
        await app.jobs.acancel(job.id)
        async with asyncio.timeout(HEARD_SECONDS):
            await all_heard.wait()
    used = server.usage().cpu - used
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await app.aclose()
    return sorted(heard), used
