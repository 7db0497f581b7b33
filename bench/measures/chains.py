"""Chains: the cost of releasing the next job."""

from collections.abc import Callable, Iterator

import msgspec

from bench import tasks
from bench.context import BenchContext
from bench.report.figures import Base, Row, Section, Target, bars
from bench.worker import CHUNK, Worker
from windlass.bench.process import BenchFailed
from windlass.client.app import App
from windlass.client.tasks.chain import chain
from windlass.client.tasks.previous import PREVIOUS
from windlass.core.jobs.job import NewJob

UNIT = "jobs/s"
LINKS = 10
WANTED = Target(0.60)
"""Of the rate of as many independent jobs."""


class Case(msgspec.Struct, frozen=True):
    """A kind of jobs, ten at a time: its name, and one ten of them."""

    name: str
    make: Callable[[], list[NewJob]]


def measure(context: BenchContext) -> Section:
    """The same number of jobs with and without parents, in turn, round by round."""
    single, *linked = cases()
    rates: dict[str, list[float]] = {}
    for _ in context.rounds("chains"):
        for case in (single, *linked):
            context.progress(f"chains: {case.name}")
            rates.setdefault(case.name, []).append(_drain(context, case))
    base = Base(single.name, rates[single.name])
    rows = [
        Row(name=single.name, unit=UNIT, rounds=base.rounds),
        *(Row(name=each.name, unit=UNIT, rounds=rates[each.name], base=base, target=WANTED) for each in linked),
    ]
    return _section(context, rows)


def cases() -> list[Case]:
    """The independent jobs first."""
    return [
        Case("independent jobs", lambda: [tasks.link.job(1, tasks.FILLER) for _ in range(LINKS)]),
        Case(f"chains of {LINKS}", _chain),
        Case(f"chains of {LINKS}, results taken", _passing_on),
    ]


def _chain() -> list[NewJob]:
    return list(chain(*(tasks.link.job(1, tasks.FILLER) for _ in range(LINKS))).jobs)


def _passing_on() -> list[NewJob]:
    first = tasks.link.job(1, tasks.FILLER)
    return list(chain(first, *(tasks.link.job(PREVIOUS, tasks.FILLER) for _ in range(LINKS - 1))).jobs)


def _drain(context: BenchContext, case: Case) -> float:
    jobs = context.scale.drain
    with context.store() as address:
        _fill(address, case, jobs)
        Worker(address, context.folder).drain()
        span = context.store_bench.span(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{case.name}: {jobs} jobs were enqueued, {span.jobs} were completed")
    return span.rate


def _fill(address: str, case: Case, jobs: int) -> None:
    app = App(address)
    try:
        for portion in _portions(case, jobs):
            app.enqueue_many(portion)
    finally:
        app.close()


def _portions(case: Case, jobs: int) -> Iterator[list[NewJob]]:
    """Whole tens, a bounded number per call."""
    for start in range(0, jobs, CHUNK):
        yield [job for _ in range(min(CHUNK, jobs - start) // LINKS) for job in case.make()]


def _section(context: BenchContext, rows: list[Row]) -> Section:
    return Section(
        name="chains",
        title=f"Chains: {context.scale.drain:,} no-op jobs, {LINKS} to a chain",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", rows)],
        notes=[
            "`windlass worker --until-empty` with default settings, from the first claim to the last completion, as "
            "the store recorded them. All chains are enqueued before, and hundreds of them run at the same time.",
            "Results taken: each link gets the result of the link before it.",
        ],
    )
