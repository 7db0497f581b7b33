"""Pages: time and size of dashboard pages with very many jobs, queues and types."""

import asyncio
import time

import httpx
import msgspec

from bench.context import BenchContext
from bench.measures.page_statistics import fill_statistics
from bench.report.figures import Row, Section
from bench.targets import at_most
from windlass.client.app import App
from windlass.core.ids import new_id
from windlass.core.jobs.job import JobError, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.server import asgi
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota

QUEUES, TYPES = 200, 500
BATCH = 500
TRIES = 3
FILL_SECONDS = 120.0
PAGES = {
    "overview": "/",
    "overview of a day": "/?range=day",
    "overview of a week": "/?range=week",
    "jobs": "/jobs",
    "dead jobs": "/jobs?status=dead",
    "completed jobs of a queue": "/jobs?status=completed&queue=queue.7",
    "jobs of a type": "/jobs?type=type.7",
    "jobs with a tag that none has": "/jobs?tag=none",
    "search: types by a pattern": "/jobs?type=type.*",
    "search: an error that none has": "/jobs?error=Nowhere",
    "search: a payload that none has": "/jobs?payload.nothing=1",
    "search: dead, by error and payload": "/jobs?status=dead&error=Timeout&payload.n=7",
    "suggestions": "/suggestions?q=type:type.4",
    "queues": "/queues",
    "one queue": "/queues/queue.7",
    "dead letters": "/dead",
    "types": "/types",
    "one type": "/types/type.7",
    "one type, a week": "/types/type.7?range=week",
    "enqueue": "/enqueue",
    "schedules": "/schedules",
    "workers": "/workers",
    "actions": "/actions",
    "audit": "/audit",
    "settings": "/settings",
}


class Pages(msgspec.Struct):
    """Milliseconds and kilobytes of each page, by rounds."""

    took: dict[str, list[float]]
    size: dict[str, list[float]]


def measure(context: BenchContext) -> Section:
    """Every page, the best of three tries."""
    found = Pages({name: [] for name in (*PAGES, "a job")}, {name: [] for name in (*PAGES, "a job")})
    jobs = context.scale.drain * (2 if context.store_bench.targets.space else 10)
    for _ in context.rounds("pages"):
        with context.store() as address:
            asyncio.run(_read(context, address, jobs, found))
    rows = [Row(name=name, unit="ms", rounds=took, target=at_most(1_000.0)) for name, took in found.took.items()]
    largest = max(found.size, key=lambda name: max(found.size[name]))
    rows.append(
        Row(name=f"the largest page: {largest}", unit="KB", rounds=found.size[largest], target=at_most(300.0))
    )
    return Section(
        name="pages",
        title=f"Pages of the dashboard: {jobs:,} jobs, 1 % of them dead, {QUEUES} queues, {TYPES} types",
        rows=rows,
        charts=[],
        notes=["In the process of the server, without a network; the best of three tries."],
    )


async def _read(context: BenchContext, address: str, jobs: int, found: Pages) -> None:
    app = App(address)
    store = await app._ready()
    await _fill(store.with_timeout(FILL_SECONDS), jobs // 100)
    context.store_bench.fill_history(address, jobs - 3 * (jobs // 100))
    pairs = [(f"queue.{number % QUEUES}", f"type.{number}") for number in range(TYPES)]
    await fill_statistics(store.with_timeout(FILL_SECONDS), context.store_bench, address, pairs)
    token = (await app.tokens.acreate("bench", ["admin"])).text
    (job,) = await store.operator.failures(1)
    served = asgi(app, rate="1000000/s")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(served),
        base_url="http://bench",
        headers={"authorization": f"Bearer {token}"},
        timeout=120,
    ) as client:
        for name, path in {**PAGES, "a job": f"/jobs/{job.id}"}.items():
            context.progress(f"pages: {name}")
            tries = []
            for _ in range(TRIES):
                began = time.perf_counter()
                answer = await client.get(path)
                tries.append(time.perf_counter() - began)
                answer.raise_for_status()
            found.took[name].append(min(tries) * 1000)
            found.size[name].append(len(answer.content) / 1000)
    await app.aclose()


async def _fill(store: Store, dead: int) -> None:
    """Dead jobs, and twice as many that wait, over all queues and types."""
    await store.jobs.enqueue([_job(0, "default")])
    await store.leases.open(LeaseRequest(runner="bench", worker="bench", length=3600 * SECOND))
    types = tuple(f"type.{number}" for number in range(TYPES))
    for claim, start in enumerate(range(0, dead, BATCH)):
        await store.jobs.enqueue([_job(number, "dying") for number in range(start, min(dead, start + BATCH))])
        request = ClaimRequest(
            runner="bench", claim=claim, quotas=(QueueQuota("dying", BATCH),), types=types, limit=BATCH
        )
        claimed = await store.jobs.claim(request)
        await store.jobs.settle(
            [
                Settlement(
                    id=job.id,
                    queue=job.queue,
                    attempt=job.attempt,
                    status=Status.DEAD,
                    outcome="dead",
                    error=JobError(("TimeoutError", "ValueError", "KeyError")[number % 3], f"no answer to {number}"),
                    failures=1,
                )
                for number, job in enumerate(claimed)
            ]
        )
    for start in range(0, 2 * dead, BATCH):
        await store.jobs.enqueue([_job(number, f"queue.{number % QUEUES}") for number in range(start, start + BATCH)])


def _job(number: int, queue: str) -> NewJob:
    payload = f'{{"n":{number},"s":"{"x" * 64}"}}'
    return NewJob(id=new_id(), type=f"type.{number % TYPES}", payload=payload, queue=queue, tags=("vip",))
