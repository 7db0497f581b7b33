"""Graphs: the cost of nodes that wait for each other, and of the flow that checks them."""

from bench import tasks
from bench.context import BenchContext
from bench.report.figures import Base, Row, Section, Target, bars
from bench.worker import CHUNK, Worker
from windlass.bench.process import BenchFailed
from windlass.client.app import App
from windlass.client.graphs.node import Node

UNIT = "jobs/s"
NODES = 10_000
WIDTH = 1000
"""Nodes per level; each waits for one of the previous level. A worker holds fewer, so work is measured and not the
time between levels.
"""
WANTED = Target(0.50)
"""Of the rate of as many independent jobs."""


def measure(context: BenchContext) -> Section:
    """The same number of jobs alone and as one graph, in turn, round by round."""
    rates: dict[str, list[float]] = {"independent jobs": [], "one graph": []}
    for _ in context.rounds("graphs"):
        for name, fill in (("independent jobs", _fill_plain), ("one graph", _fill_graph)):
            context.progress(f"graphs: {name}")
            with context.store() as address:
                fill(address, _nodes(context))
                Worker(address, context.folder).drain()
                span = context.store_bench.span(address)
            if span.jobs < _nodes(context):
                raise BenchFailed(f"{name}: {_nodes(context)} jobs were enqueued, {span.jobs} were completed")
            rates[name].append(span.rate)
    base = Base("independent jobs", rates["independent jobs"])
    rows = [
        Row(name="independent jobs", unit=UNIT, rounds=base.rounds),
        Row(name="one graph", unit=UNIT, rounds=rates["one graph"], base=base, target=WANTED),
    ]
    return _section(context, rows)


def _nodes(context: BenchContext) -> int:
    return min(NODES, context.scale.drain)


def _fill_plain(address: str, jobs: int) -> None:
    app = App(address)
    try:
        for start in range(0, jobs, CHUNK):
            app.enqueue_many([tasks.link.job(1, tasks.FILLER) for _ in range(min(CHUNK, jobs - start))])
    finally:
        app.close()


def _fill_graph(address: str, jobs: int) -> None:
    app = App(address)
    try:
        with app.flow() as flow:
            before: list[Node[int]] = []
            level: list[Node[int]] = []
            for number in range(jobs):
                after = [before[number % WIDTH]] if before else []
                level.append(flow.add(tasks.link.job(1, tasks.FILLER), after=after))
                if len(level) == WIDTH:
                    before, level = level, []
    finally:
        app.close()


def _section(context: BenchContext, rows: list[Row]) -> Section:
    return Section(
        name="graphs",
        title=f"Graphs: {_nodes(context):,} no-op jobs in levels of {WIDTH:,}",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", rows)],
        notes=[
            "`windlass worker --until-empty` with default settings, from the first claim to the last completion, as "
            "the store recorded them. The graph is one flow; its own job is counted too.",
        ],
    )
