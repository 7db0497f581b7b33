"""Delays: the cost of a delayed enqueue, of waiting, and of the start when the job is due."""

import time

import msgspec

from bench.context import BenchContext
from bench.environment import MAX_SECONDS
from bench.measures.late import Late, beside, late
from bench.report.figures import Base, Row, Section, Target, bars
from bench.targets import at_most
from bench.worker import CHUNK, Worker, fill, make_jobs
from windlass.bench.process import BenchFailed, ChildProcess
from windlass.client.app import App
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND
from windlass.core.status import LIVE
from windlass.store.clock import SystemClock

UNIT = "jobs/s"
ENQUEUE, DRAIN = Target(0.80), Target(0.60)
"""Of those that are due at once."""
STARTED = at_most(1_000)
"""Milliseconds after its due time within which a job should start."""
WITHIN = 0.8
"""Under a held snapshot the drain may be 1/5 slower."""
FAR = 86_400.0


class Rates(msgspec.Struct):
    """Of each round: jobs per second, and milliseconds until the first of a backlog was claimed."""

    at_once: list[float] = []
    delayed: list[float] = []
    pending: list[float] = []
    due: list[float] = []
    first: list[float] = []


def measure(context: BenchContext) -> Section:
    """Delayed jobs and jobs that are due at once, in turn, round by round."""
    held = [False, True] if context.store_bench.targets.held else [False]
    rates = {each: Rates() for each in held}
    lates = {each: Late() for each in held}
    for _ in context.rounds("delays"):
        rates[False].at_once.append(_enqueue(context, None))
        rates[False].delayed.append(_enqueue(context, FAR))
        for each in held:
            context.progress(f"delays: drains{' under a held snapshot' if each else ''}")
            rates[each].pending.append(_pending(context, held=each))
            _just_due(context, rates[each], held=each)
            context.progress(f"delays: among {context.scale.scheduled:,} that wait")
            late(context, lates[each], held=each)
    drains = [row for each in held for row in _drains(rates[each], held=each)]
    return _section(context, [*_enqueues(rates[False]), *drains], [*_lates(lates), *beside(context)])


def _enqueue(context: BenchContext, delay: float | None) -> float:
    """Jobs per second, enqueued by one call."""
    with context.store() as address:
        app = App(address)
        try:
            app.stats.counts()
            made = _made(context.scale.bulk, delay)
            began = time.perf_counter()
            app.enqueue_many(made)
            return len(made) / (time.perf_counter() - began)
        finally:
            app.close()


def _made(jobs: int, delay: float | None) -> list[NewJob]:
    made = make_jobs(jobs)
    if delay is None:
        return made
    # A time each, a millisecond apart.
    return [
        msgspec.structs.replace(job, delay=round((delay + number / 1000) * SECOND)) for number, job in enumerate(made)
    ]


def _pending(context: BenchContext, *, held: bool) -> float:
    with context.store() as address:
        fill(address, context.scale.drain)
        with context.holding_snapshot(address, held=held):
            Worker(address, context.folder).drain()
        span = context.store_bench.span(address)
    _check(context.scale.drain, span.jobs)
    return span.rate


def _just_due(context: BenchContext, rates: Rates, *, held: bool) -> None:
    """All for the same moment, while a worker waits for it."""
    clock, jobs = SystemClock(), context.scale.drain
    with context.store() as address:
        due = clock.wall() + round(context.scale.ahead_seconds * SECOND)
        app = App(address)
        try:
            for start in range(0, jobs, CHUNK):
                made = make_jobs(min(CHUNK, jobs - start))
                app.enqueue_many([msgspec.structs.replace(job, run_at=due) for job in made])
            with context.holding_snapshot(address, held=held), Worker(address, context.folder).start() as process:
                process.ends_within(context.scale.start_seconds)
                if clock.wall() >= due:
                    raise BenchFailed(f"{jobs:,} jobs were due before all were enqueued and a worker was there")
                process.ends_within((due - clock.wall()) / SECOND)
                _until_done(app, process)
        finally:
            app.close()
        span = context.store_bench.span(address)
    _check(jobs, span.jobs)
    rates.due.append(jobs / (span.last_finish - due / SECOND))
    rates.first.append((span.first_claim - due / SECOND) * 1000)


def _until_done(app: App, process: ChildProcess) -> None:
    """Poll rarely: each query costs part of the machine."""
    deadline = time.monotonic() + MAX_SECONDS
    while _live(app):
        process.raise_if_failed()
        if time.monotonic() > deadline:
            raise BenchFailed(f"not all jobs were completed after {MAX_SECONDS:g} s")
        process.ends_within(0.5)


def _live(app: App) -> int:
    """How many have not ended, in one query: between several a job could change its status unseen."""
    totals = app.stats.counts().totals
    return sum(totals[status] for status in LIVE)


def _check(jobs: int, completed: int) -> None:
    if completed != jobs:
        raise BenchFailed(f"{jobs} jobs were enqueued, {completed} were completed")


def _enqueues(rates: Rates) -> list[Row]:
    base = Base("enqueued, due at once", rates.at_once)
    return [Row(name="enqueued for tomorrow", unit=UNIT, rounds=rates.delayed, base=base, target=ENQUEUE)]


def _drains(rates: Rates, *, held: bool) -> list[Row]:
    how = ", held" if held else ""
    base, target = (
        Base(f"drain, pending{how}", rates.pending),
        Target(round(DRAIN.bound * (WITHIN if held else 1), 2)),
    )
    return [
        Row(name=f"drain, just due{how}", unit=UNIT, rounds=rates.due, base=base, target=target),
        Row(name=f"first of them claimed{how}", unit="ms", rounds=rates.first, target=STARTED),
    ]


def _lates(lates: dict[bool, Late]) -> list[Row]:
    return [
        Row(name=f"late{', held' if held else ''}: {name}", unit="ms", rounds=rounds, target=target)
        for held, found in lates.items()
        for name, rounds, target in (("median", found.median, None), ("worst", found.worst, STARTED))
    ]


def _section(context: BenchContext, rates: list[Row], lates: list[Row]) -> Section:
    scale = context.scale
    shown = [row for row in rates if row.unit == UNIT]
    return Section(
        name="delays",
        title=f"Delays: {scale.drain:,} jobs for later, {scale.scheduled:,} that wait",
        rows=[*rates, *lates],
        charts=[bars("Jobs per second", shown), bars("Among those that wait", lates)],
        notes=[
            f"Enqueued: {scale.bulk:,} jobs by one call, each for a time of its own, until they are flushed to disk.",
            "Just due: all are for the same moment, and a worker waits for it; the time runs from that moment to the "
            "last completion, as the store recorded it. Pending: `windlass worker --until-empty`, from the first "
            "claim to the last completion.",
            f"Late: {scale.trickling:,} jobs that come due one after the other, a millisecond apart, among "
            f"{scale.scheduled:,} for tomorrow; from a job's time to its handler's first line.",
            "The claim: 100 pending jobs, flush to disk included, in this process.",
        ],
    )
