"""History: a drain after millions of finished jobs."""

import statistics

from bench.context import BenchContext
from bench.report.figures import Bars, Base, Row, Section
from bench.worker import Worker, fill
from windlass.bench.process import BenchFailed

UNIT = "jobs/s"


def measure(context: BenchContext) -> Section:
    """The same drain after each number of finished jobs, in turn, round by round."""
    rates: dict[str, list[float]] = {_name(ended): [] for ended in context.scale.histories}
    for _ in context.rounds("history"):
        for ended in context.scale.histories:
            context.progress(f"history: a drain, {_name(ended)}")
            rates[_name(ended)].append(_drain(context, ended))
    return _section(context, rates)


def _name(ended: int) -> str:
    return f"{ended:,} in history"


def _drain(context: BenchContext, ended: int) -> float:
    jobs = context.scale.drain
    with context.store() as address:
        fill(address, jobs)
        if ended:
            context.store_bench.fill_history(address, ended)
        Worker(address, context.folder).drain()
        finishes = context.store_bench.finishes(address)
        span = context.store_bench.span(address)
    # What was put there directly ended in one moment, before the worker began.
    if span.jobs != jobs + ended:
        raise BenchFailed(f"{jobs} jobs were enqueued, {span.jobs - ended} were completed")
    return rate(finishes, ended)


def rate(finishes: list[tuple[float, int]], ended: int) -> float:
    """Jobs per second from the first completion to the last, without the jobs that had finished before."""
    ours = finishes[1:] if ended else finishes
    jobs = sum(count for _, count in ours[1:])
    return jobs / (ours[-1][0] - ours[0][0])


def _section(context: BenchContext, rates: dict[str, list[float]]) -> Section:
    first = _name(context.scale.histories[0])
    base, target = Base(first, rates[first]), context.store_bench.targets.history
    rows = [Row(name=first, unit=UNIT, rounds=rates[first])]
    rows += [
        Row(name=name, unit=UNIT, rounds=rounds, base=base, target=target)
        for name, rounds in rates.items()
        if name != first
    ]
    bars = [(name, statistics.median(rounds)) for name, rounds in rates.items()]
    return Section(
        name="history",
        title=f"History: a drain of {context.scale.drain:,} jobs after many others",
        rows=rows,
        charts=[Bars("Drain by what is in history", UNIT, bars, len(bars))],
        notes=[
            "`windlass worker --until-empty` with default settings. From the first completion to the last, as the "
            "store recorded them. The jobs in history are put there directly, not by draining them.",
        ],
    )
