"""Capacity: bytes per waiting and per finished job, and jobs a day of one worker."""

from bench.context import BenchContext
from bench.report.figures import Row, Section, bars
from bench.worker import Worker, fill, make_jobs

UNIT = "bytes/job"
DAY = 86_400


def measure(context: BenchContext) -> Section:
    """Before, while all wait, and after all have ended."""
    waiting, finished, daily, jobs = list[float](), list[float](), list[float](), context.scale.drain
    occupied = context.store_bench.occupied
    for _ in context.rounds("capacity"):
        with context.store() as address:
            fill(address, 1)  # creates what exists once per store
            empty = occupied(address)
            fill(address, jobs)
            full = occupied(address)
            Worker(address, context.folder).drain()
            ended = occupied(address)
            daily.append(context.store_bench.span(address).rate * DAY)
        waiting.append((full - empty) / jobs)
        finished.append((ended - empty) / jobs)
    where = context.store_bench.targets.kept
    space = [
        Row(name=f"waiting, {where}", unit=UNIT, rounds=waiting, target=context.store_bench.targets.space),
        Row(name=f"after all have ended, {where}", unit=UNIT, rounds=finished),
    ]
    return Section(
        name="capacity",
        title=f"Capacity: {jobs:,} jobs",
        rows=[*space, Row(name="no-op jobs a day, one runner", unit="jobs", rounds=daily)],
        charts=[bars("What a job takes", space)],
        notes=[
            f"Payloads of {len(make_jobs(1)[0].payload)} bytes. By how much the store has grown. A "
            "byte per job is a megabyte per million jobs. On disk, the space of finished jobs is reused.",
            "Jobs a day: the rate of the drain over 24 hours, an upper bound for jobs that do nothing.",
        ],
    )
