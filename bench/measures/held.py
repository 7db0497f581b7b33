"""Held: a drain and a trickle while another connection holds a snapshot open, so that vacuum removes nothing."""

import sys

import msgspec

from bench import tasks
from bench.context import BenchContext
from bench.environment import bench_environment
from bench.measures.latency import finish, stamps
from bench.producer import RATE
from bench.report.figures import Base, Row, Section, Target, bars, percentile
from bench.stores.base import Span
from bench.worker import Worker, fill
from windlass.bench.process import BenchFailed, ChildProcess

UNIT = "jobs/s"


class HeldRates(msgspec.Struct):
    """Rates of each round: of the whole drain, of its first jobs, of its last."""

    whole: list[float] = []
    first: list[float] = []
    last: list[float] = []
    median: list[float] = []
    worst: list[float] = []
    """Latencies of the trickle, in milliseconds."""


def measure(context: BenchContext) -> Section:
    """The same drain and the same trickle with and without, alternately."""
    if not context.store_bench.targets.snapshots:
        return Section(name="held", title="Held", rows=[], notes=["Not run: this store has no snapshots."])
    free, held = HeldRates(), HeldRates()
    for _ in context.rounds("held"):
        for pace, holding in ((free, False), (held, True)):
            how = "under a held snapshot" if holding else "undisturbed"
            context.progress(f"held: a drain {how}")
            _drain(context, pace, holding=holding)
            context.progress(f"held: a trickle {how}")
            _trickle(context, pace, holding=holding)
    return _section(context, free, held)


def _drain(context: BenchContext, pace: HeldRates, *, holding: bool) -> None:
    jobs, edge = context.scale.held, context.scale.edge
    with context.store() as address:
        fill(address, jobs)
        with context.holding_snapshot(address, held=holding):
            Worker(address, context.folder).drain()
        span, finishes = context.store_bench.span(address), context.store_bench.finishes(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{jobs} jobs were enqueued, {span.jobs} were completed")
    pace.whole.append(span.rate)
    first, last = edges(span, finishes, edge)
    pace.first.append(first)
    pace.last.append(last)


def edges(span: Span, finishes: list[tuple[float, int]], edge: int) -> tuple[float, float]:
    """Jobs per second of the first `edge` jobs of a drain, and of the last."""
    done, moments = 0, [(span.first_claim, 0)]
    for moment, jobs in finishes:
        done += jobs
        moments.append((moment, done))
    until = next(each for each in moments if each[1] >= edge)
    since = next(each for each in reversed(moments) if each[1] <= done - edge)
    end = moments[-1]
    return until[1] / (until[0] - span.first_claim), (end[1] - since[1]) / (end[0] - since[0])


def _trickle(context: BenchContext, pace: HeldRates, *, holding: bool) -> None:
    jobs = int(context.scale.trickle_rate * context.scale.trickle_seconds)
    with context.store() as address:
        # A first job creates the tables, so that the snapshot is older than the jobs and not than the tables.
        fill(address, 1)
        path = context.scratch() / "stamps"
        environment = {"WINDLASS_STORE": address, tasks.STAMPS: str(path)}
        with (
            Worker(address, context.folder, environment).start() as process,
            context.holding_snapshot(address, held=holding),
        ):
            # One job first: the worker's start-up is not measured.
            _enqueue(context, environment, 1)
            stamps(process, path, 1)
            _enqueue(context, environment, jobs)
            taken = stamps(process, path, jobs + 1)[1:]
    pace.median.append(percentile(taken, 50))
    pace.worst.append(percentile(taken, 99))


def _enqueue(context: BenchContext, environment: dict[str, str], jobs: int) -> None:
    command = [sys.executable, "-m", "bench.producer", str(jobs)]
    steady = {RATE: str(context.scale.trickle_rate)}
    finish(ChildProcess(command, context.folder, {**bench_environment(), **environment, **steady}))


def _section(context: BenchContext, free: HeldRates, held: HeldRates) -> Section:
    targets, scale = context.store_bench.targets, context.scale
    edge = f"{scale.edge:,}"
    drains = [
        _row("drain, held", held.whole, Base("drain, undisturbed", free.whole), targets.held),
        _row(f"last {edge}, held", held.last, Base(f"first {edge}, held", held.first), targets.held),
        _row(f"last {edge}, undisturbed", free.last, Base(f"first {edge}, undisturbed", free.first)),
    ]
    trickles = [
        _row("trickle, held: median", held.median, Base("undisturbed: median", free.median), unit="ms"),
        _row("trickle, held: p99", held.worst, Base("undisturbed: p99", free.worst), targets.trickle, unit="ms"),
    ]
    return Section(
        name="held",
        title=f"Held snapshot: {scale.held:,} jobs drained, {scale.trickle_rate} jobs/s trickling",
        rows=[*drains, *trickles],
        charts=[bars("Drain", drains), bars("Trickle: from enqueue to start", trickles)],
        notes=[
            "Another connection holds a snapshot from before the worker starts to after it ends, as a long report or "
            "a forgotten session does: no row that ends in between can be cleaned up.",
            f"The trickle: {scale.trickle_rate} jobs/s for {scale.trickle_seconds:g} s from another process, one by "
            "one; from just before the call that enqueues to the handler's first line.",
        ],
    )


def _row(name: str, rounds: list[float], base: Base, target: Target | None = None, unit: str = UNIT) -> Row:
    return Row(name=name, unit=unit, rounds=rounds, base=base, target=target)
