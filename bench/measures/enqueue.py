"""Enqueue: how fast jobs are enqueued, in bulk and one by one. An enqueue ends when the job is flushed to disk."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import msgspec

from bench.context import BenchContext
from bench.peer import Peer
from bench.report.figures import Base, Row, Section, bars
from bench.tasks import FILLER
from bench.worker import make_jobs
from windlass.client.app import App
from windlass.client.tasks.task import Task

PRODUCERS = 50
CALL = 5_000
"""Jobs in a call of a bulk."""
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
    peers_bulk: dict[str, list[float]] = {}
    peers_alone: dict[str, list[float]] = {}


def measure(context: BenchContext) -> Section:
    """Windlass, the bare driver and the peers, one after the other, round by round."""
    rates, scale, bare = Rates(), context.scale, context.store_bench
    for _ in context.rounds("enqueue"):
        rates.bare_bulk.append(bare.bare_bulk(scale.bulk, with_making=False))
        rates.bulk.append(_bulk(context, with_making=False))
        rates.bare_bulk_made.append(bare.bare_bulk(scale.bulk, with_making=True))
        rates.bulk_made.append(_bulk(context, with_making=True))
        rates.bare_commits.append(bare.bare_commits(scale.one_by_one))
        rates.alone.append(alone(context))
        rates.together.append(_together(context))
        for peer in context.peers:
            _peer(context, peer, rates)
    return _section(context, rates)


def _peer(context: BenchContext, peer: Peer, rates: Rates) -> None:
    parts = (("bulk", peer.entry.bulk, rates.peers_bulk), ("fill", peer.entry.single, rates.peers_alone))
    for verb, share, kept in parts:
        if peer.runs and share is not None:
            context.progress(f"enqueue: {peer.name}, {verb}")
            with context.peer_store() as peer_store:
                rate = peer.run(verb, peer_store, context.of_peers(share.jobs)).rate
            kept.setdefault(peer.name, []).append(rate)


@contextmanager
def _producer(context: BenchContext) -> Iterator[tuple[App, "Task[[int, str], Awaitable[None], None]"]]:
    """An app with a task and an open store; creating them is not measured."""
    with context.store() as address:
        app = App(context.route(address))
        task = app.task(type="noop")(_noop)
        app.stats.counts()
        try:
            yield app, task
        finally:
            app.close()


async def _noop(n: int, s: str) -> None:
    """Never run here."""


def _bulk(context: BenchContext, *, with_making: bool) -> float:
    jobs = context.scale.bulk
    sizes = [min(CALL, jobs - start) for start in range(0, jobs, CALL)]
    with _producer(context) as (app, _):
        made = [] if with_making else [make_jobs(size) for size in sizes]
        began = time.perf_counter()
        for number, size in enumerate(sizes):
            app.enqueue_many(make_jobs(size) if with_making else made[number])
        return jobs / (time.perf_counter() - began)


def alone(context: BenchContext) -> float:
    """One producer without a loop, which waits until each job is stored."""
    jobs = context.scale.one_by_one
    with _producer(context) as (_, task):
        began = time.perf_counter()
        for _ in range(jobs):
            task.enqueue(1, FILLER)
        return jobs / (time.perf_counter() - began)


def _together(context: BenchContext) -> float:
    """Many coroutines; each waits until its job is stored before it enqueues the next."""
    each = context.scale.coroutines // PRODUCERS

    async def produce(task: "Task[[int, str], Awaitable[None], None]") -> None:
        for _ in range(each):
            await task.aenqueue(1, FILLER)

    async def produce_all(app: App, task: "Task[[int, str], Awaitable[None], None]") -> float:
        began = time.perf_counter()
        await asyncio.gather(*[produce(task) for _ in range(PRODUCERS)])
        return each * PRODUCERS / (time.perf_counter() - began)

    with _producer(context) as (app, task):
        return asyncio.run(produce_all(app, task))


def _section(context: BenchContext, rates: Rates) -> Section:
    scale, targets = context.scale, context.store_bench.targets
    commits = Base("bare, one commit per job", rates.bare_commits)
    bulk = [
        Row(
            name="bulk, jobs made before",
            unit=UNIT,
            rounds=rates.bulk,
            base=Base("bare bulk, rows made before", rates.bare_bulk),
            target=targets.bulk,
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
        Row(name=together, unit=UNIT, rounds=rates.together, base=commits, target=targets.together),
        Row(name="one by one, sync", unit=UNIT, rounds=rates.alone, base=commits, target=targets.alone),
    ]
    for peer in context.peers:
        if (share := peer.entry.bulk) is not None:
            base = peer.base(rates.peers_bulk.get(peer.name, []))
            bulk.append(Row(name=bulk[1].name, unit=UNIT, rounds=rates.bulk_made, base=base, target=share.target))
        if (share := peer.entry.single) is not None:
            base = peer.base(rates.peers_alone.get(peer.name, []))
            single.append(Row(name=single[1].name, unit=UNIT, rounds=rates.alone, base=base, target=share.target))
    return Section(
        name="enqueue",
        title=f"Enqueue: {scale.bulk:,} in bulk, {scale.coroutines:,} and {scale.one_by_one:,} one by one",
        rows=[*bulk, *single],
        charts=[bars("Jobs per second, in bulk", bulk), bars("Jobs per second, one by one", single)],
        notes=[
            targets.stored,
            f"In bulk, {CALL:,} jobs to a call of `enqueue_many`, which stores all or none of them.",
            targets.bare_inserts,
            "Jobs that are made are checked against the task's annotations and encoded one by one; the bare rows "
            "share one payload made beforehand.",
            "Peers enqueue by their own bulk verb, 5,000 to a call (oban and RQ 1,000), and one by one.",
        ],
    )
