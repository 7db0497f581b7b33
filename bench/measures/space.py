"""Space: what a job takes where jobs are kept in memory, while it waits and after it has ended."""

from bench.context import BenchContext
from bench.report.figures import Row, Section, bars
from bench.worker import Worker, fill, make_jobs

TITLE = "Space: memory of the server for each job"
UNIT = "bytes/job"


def measure(context: BenchContext) -> Section:
    """Before, while all wait, and after all have ended."""
    waiting, finished, jobs = list[float](), list[float](), context.scale.drain
    for _ in context.rounds("space"):
        with context.store() as address:
            empty = context.store_bench.occupied(address)
            if empty is None:
                return Section(name="space", title=TITLE, rows=[], notes=["Not run: jobs are on disk here."])
            fill(address, jobs)
            full = context.store_bench.occupied(address)
            Worker(address, context.folder).drain()
            ended = context.store_bench.occupied(address)
        assert full is not None
        assert ended is not None
        waiting.append((full - empty) / jobs)
        finished.append((ended - empty) / jobs)
    rows = [
        Row(name="waiting", unit=UNIT, rounds=waiting, target=context.store_bench.targets.space),
        Row(name="finished", unit=UNIT, rounds=finished),
    ]
    return Section(
        name="space",
        title=f"{TITLE}, {jobs:,} of them",
        rows=rows,
        charts=[bars("Memory of a job", rows)],
        notes=[
            f"Payloads of {len(make_jobs(1)[0].payload)} bytes. What the server says that its data take, less what it said before."
        ],
    )
