"""Chains: what it costs that each job lets the next one go on."""

from collections.abc import Callable, Iterator

import msgspec

from windlass.bench import tasks
from windlass.bench.contest import BenchFailed
from windlass.bench.figures import Base, Row, Section, Target, bars
from windlass.bench.ground import Ground
from windlass.bench.labour import CHUNK, FILLER, Labour
from windlass.client.app import App
from windlass.client.chain import chain
from windlass.client.previous import PREVIOUS
from windlass.core.job import NewJob

UNIT = "jobs/s"
LINKS = 10
WANTED = Target(0.50)
"""Of the rate of as many jobs that wait for nobody."""


class Case(msgspec.Struct, frozen=True):
    """Jobs in tens: what they are called, and one ten of them."""

    name: str
    make: Callable[[], list[NewJob]]


def measure(ground: Ground) -> Section:
    """As many jobs without and with others before them, in turn, round by round."""
    single, *linked = cases()
    rates: dict[str, list[float]] = {}
    for _ in ground.rounds("chains"):
        for case in (single, *linked):
            ground.say(f"chains: {case.name}")
            rates.setdefault(case.name, []).append(_drain(ground, case))
    base = Base(single.name, rates[single.name])
    rows = [
        Row(name=single.name, unit=UNIT, rounds=base.rounds),
        *(Row(name=each.name, unit=UNIT, rounds=rates[each.name], base=base, target=WANTED) for each in linked),
    ]
    return _section(ground, rows)


def cases() -> list[Case]:
    """Those that wait for nobody first."""
    return [
        Case("independent jobs", lambda: [tasks.link.job(1, FILLER) for _ in range(LINKS)]),
        Case(f"chains of {LINKS}", _chain),
        Case(f"chains of {LINKS}, results taken", _passing_on),
    ]


def _chain() -> list[NewJob]:
    return list(chain(*(tasks.link.job(1, FILLER) for _ in range(LINKS))).jobs)


def _passing_on() -> list[NewJob]:
    first = tasks.link.job(1, FILLER)
    return list(chain(first, *(tasks.link.job(PREVIOUS, FILLER) for _ in range(LINKS - 1))).jobs)


def _drain(ground: Ground, case: Case) -> float:
    jobs = ground.scale.drain
    with ground.store() as address:
        _fill(address, case, jobs)
        Labour(address, ground.folder).drain()
        span = ground.yardstick.span(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{case.name}: {jobs} jobs were handed in, {span.jobs} were completed")
    return span.rate


def _fill(address: str, case: Case, jobs: int) -> None:
    app = App(address)
    try:
        for portion in _portions(case, jobs):
            app.enqueue_many(portion)
    finally:
        app.close()


def _portions(case: Case, jobs: int) -> Iterator[list[NewJob]]:
    """Whole tens, a bounded number to a call."""
    for start in range(0, jobs, CHUNK):
        yield [job for _ in range(min(CHUNK, jobs - start) // LINKS) for job in case.make()]


def _section(ground: Ground, rows: list[Row]) -> Section:
    return Section(
        name="chains",
        title=f"Chains: {ground.scale.drain:,} no-op jobs, {LINKS} to a chain",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", rows)],
        notes=[
            "`windlass worker --until-empty` with default settings, from the first claim to the last completion, as "
            "the store recorded them. All chains are handed in before, so that many of them go on at the same time.",
            "Results taken: each link gets what the one before it returned.",
        ],
    )
