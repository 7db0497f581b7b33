"""Enqueue: how fast jobs are handed in, in bulk and one by one. A hand-in ends when the job is flushed to disk."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import msgspec

from windlass.bench import labour
from windlass.bench.figures import Base, Row, Section, Target, bars
from windlass.bench.ground import Ground
from windlass.client.app import App
from windlass.client.task import Task

OF_BARE_BULK = Target(0.50)
OF_COMMITS_TOGETHER = Target(8.0)
OF_COMMITS_ALONE = Target(0.80)
PRODUCERS = 50
UNIT = "jobs/s"


class Rates(msgspec.Struct):
    """Jobs per second, of each round."""

    bulk: list[float] = []
    bulk_made: list[float] = []
    together: list[float] = []
    alone: list[float] = []
    bare_bulk: list[float] = []
    bare_bulk_made: list[float] = []
    bare_commits: list[float] = []
    huey: list[float] = []


def measure(ground: Ground) -> Section:
    """Windlass, the bare driver and Huey, one after the other, round by round."""
    rates, scale, bare = Rates(), ground.scale, ground.yardstick
    for _ in ground.rounds("enqueue"):
        rates.bare_bulk.append(bare.bare_bulk(scale.bulk, with_making=False))
        rates.bulk.append(_bulk(ground, with_making=False))
        rates.bare_bulk_made.append(bare.bare_bulk(scale.bulk, with_making=True))
        rates.bulk_made.append(_bulk(ground, with_making=True))
        rates.bare_commits.append(bare.bare_commits(scale.one_by_one))
        rates.alone.append(_alone(ground))
        rates.together.append(_together(ground))
        if ground.peers.huey.why_not is None:
            rates.huey.append(ground.peers.huey.run("fill", ground.scratch(), scale.one_by_one).rate)
    return _section(ground, rates)


@contextmanager
def _producer(ground: Ground) -> Iterator[tuple[App, "Task[[int, str], Awaitable[None], None]"]]:
    """An app with a task and an open store, whose making is not measured."""
    with ground.store() as address:
        app = App(address)
        task = app.task(type="noop")(_noop)
        app.stats.counts()
        try:
            yield app, task
        finally:
            app.close()


async def _noop(n: int, s: str) -> None:
    """Never run here."""


def _bulk(ground: Ground, *, with_making: bool) -> float:
    jobs = ground.scale.bulk
    with _producer(ground) as (app, _):
        began = time.perf_counter()
        made = labour.make(jobs)
        if not with_making:
            began = time.perf_counter()
        app.enqueue_many(made)
        return jobs / (time.perf_counter() - began)


def _alone(ground: Ground) -> float:
    """One producer without a loop, that waits for each job to be stored."""
    jobs = ground.scale.one_by_one
    with _producer(ground) as (_, task):
        began = time.perf_counter()
        for _ in range(jobs):
            task.enqueue(1, labour.FILLER)
        return jobs / (time.perf_counter() - began)


def _together(ground: Ground) -> float:
    """Many coroutines, each of which waits for its job to be stored before it makes the next."""
    each = ground.scale.coroutines // PRODUCERS

    async def produce(task: "Task[[int, str], Awaitable[None], None]") -> None:
        for _ in range(each):
            await task.aenqueue(1, labour.FILLER)

    async def produce_all(app: App, task: "Task[[int, str], Awaitable[None], None]") -> float:
        began = time.perf_counter()
        await asyncio.gather(*[produce(task) for _ in range(PRODUCERS)])
        return each * PRODUCERS / (time.perf_counter() - began)

    with _producer(ground) as (app, task):
        return asyncio.run(produce_all(app, task))


def _section(ground: Ground, rates: Rates) -> Section:
    scale, huey = ground.scale, ground.peers.huey
    commits, peer = Base("bare, one commit per job", rates.bare_commits), Base(huey.title, rates.huey, huey.why_not)
    bulk = [
        Row(
            name="bulk, jobs made before",
            unit=UNIT,
            rounds=rates.bulk,
            base=Base("bare bulk, rows made before", rates.bare_bulk),
            target=OF_BARE_BULK,
        ),
        Row(
            name="bulk, with making the jobs",
            unit=UNIT,
            rounds=rates.bulk_made,
            base=Base("bare bulk, with making the rows", rates.bare_bulk_made),
        ),
    ]
    together = f"one by one, {PRODUCERS} coroutines"
    single = [
        Row(name=together, unit=UNIT, rounds=rates.together, base=commits, target=OF_COMMITS_TOGETHER),
        Row(name="one by one, sync", unit=UNIT, rounds=rates.alone, base=commits, target=OF_COMMITS_ALONE),
        Row(name="one by one, sync", unit=UNIT, rounds=rates.alone, base=peer),
    ]
    return Section(
        name="enqueue",
        title=f"Enqueue: {scale.bulk:,} in bulk, {scale.coroutines:,} and {scale.one_by_one:,} one by one",
        rows=[*bulk, *single],
        charts=[bars("Jobs per second, in bulk", bulk), bars("Jobs per second, one by one", single)],
        notes=[
            "Every figure ends with the job flushed to disk. `enqueue_many` stores all or none by one commit; the "
            "bare driver inserts by `executemany`, 1,000 rows to a transaction.",
            "Jobs that are made are checked against the task's annotations and encoded one by one; the bare rows "
            "share one payload made beforehand.",
            "One commit per job: `BEGIN IMMEDIATE`, `INSERT`, `COMMIT` on one connection.",
        ],
    )
