"""Delays: what it costs to hand in a job for later, to wait, and to start when the time has come."""

import time

import msgspec

from windlass.bench import labour
from windlass.bench.contest import PATIENCE, BenchFailed, Served
from windlass.bench.figures import Base, Row, Section, Target, bars
from windlass.bench.goals import at_most
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour
from windlass.bench.late import Late, beside, holding, late
from windlass.client.app import App
from windlass.core.job import NewJob
from windlass.core.moments import SECOND
from windlass.core.status import LIVE
from windlass.store.clock import SystemClock

UNIT = "jobs/s"
HAND_IN, DRAIN = Target(0.80), Target(0.60)
"""Of those that are due at once."""
STARTED = at_most(1_000)
"""Milliseconds after its time in which a job is to start."""
WITHIN = 0.8
"""Under a held snapshot the drain may be a fifth less."""
FAR = 86_400.0


class Rates(msgspec.Struct):
    """Of each round: jobs per second, and milliseconds until the first of a backlog was claimed."""

    at_once: list[float] = []
    delayed: list[float] = []
    pending: list[float] = []
    due: list[float] = []
    first: list[float] = []


def measure(ground: Ground) -> Section:
    """Each beside what is due at once, in turn, round by round."""
    held = [False, True] if ground.yardstick.goals.held else [False]
    rates = {each: Rates() for each in held}
    lates = {each: Late() for each in held}
    for _ in ground.rounds("delays"):
        rates[False].at_once.append(_hand_in(ground, None))
        rates[False].delayed.append(_hand_in(ground, FAR))
        for each in held:
            ground.say(f"delays: drains{' under a held snapshot' if each else ''}")
            rates[each].pending.append(_pending(ground, held=each))
            _just_due(ground, rates[each], held=each)
            ground.say(f"delays: among {ground.scale.scheduled:,} that wait")
            late(ground, lates[each], held=each)
    drains = [row for each in held for row in _drains(rates[each], held=each)]
    return _section(ground, [*_hand_ins(rates[False]), *drains], [*_lates(lates), *beside(ground)])


def _hand_in(ground: Ground, delay: float | None) -> float:
    """Jobs per second, handed in by one call."""
    with ground.store() as address:
        app = App(address)
        try:
            app.stats.counts()
            made = _made(ground.scale.bulk, delay)
            began = time.perf_counter()
            app.enqueue_many(made)
            return len(made) / (time.perf_counter() - began)
        finally:
            app.close()


def _made(jobs: int, delay: float | None) -> list[NewJob]:
    made = labour.make(jobs)
    if delay is None:
        return made
    return [msgspec.structs.replace(job, delay=round(delay * SECOND)) for job in made]


def _pending(ground: Ground, *, held: bool) -> float:
    with ground.store() as address:
        labour.fill(address, ground.scale.drain)
        with holding(ground, address, held=held):
            Labour(address, ground.folder).drain()
        span = ground.yardstick.span(address)
    _check(ground.scale.drain, span.jobs)
    return span.rate


def _just_due(ground: Ground, rates: Rates, *, held: bool) -> None:
    """All for the same moment, while a worker waits for it."""
    clock, jobs = SystemClock(), ground.scale.drain
    with ground.store() as address:
        due = clock.wall() + round(ground.scale.ahead_seconds * SECOND)
        app = App(address)
        try:
            for start in range(0, jobs, labour.CHUNK):
                made = labour.make(min(labour.CHUNK, jobs - start))
                app.enqueue_many([msgspec.structs.replace(job, run_at=due) for job in made])
            with holding(ground, address, held=held), Labour(address, ground.folder).worker() as served:
                served.ends_within(ground.scale.start_seconds)
                if clock.wall() >= due:
                    raise BenchFailed(f"{jobs:,} jobs were due before all were handed in and a worker was there")
                served.ends_within((due - clock.wall()) / SECOND)
                _until_done(app, served)
        finally:
            app.close()
        span = ground.yardstick.span(address)
    _check(jobs, span.jobs)
    rates.due.append(jobs / (span.last_finish - due / SECOND))
    rates.first.append((span.first_claim - due / SECOND) * 1000)


def _until_done(app: App, served: Served) -> None:
    """Look rarely: who looks takes part of the machine."""
    deadline = time.monotonic() + PATIENCE
    while _live(app):
        served.check()
        if time.monotonic() > deadline:
            raise BenchFailed(f"not all jobs were completed after {PATIENCE:g} s")
        served.ends_within(0.5)


def _live(app: App) -> int:
    """How many have not ended, by one look: one that goes from status to status would hide from several."""
    totals = app.stats.counts().totals
    return sum(totals[status] for status in LIVE)


def _check(jobs: int, completed: int) -> None:
    if completed != jobs:
        raise BenchFailed(f"{jobs} jobs were handed in, {completed} were completed")


def _hand_ins(rates: Rates) -> list[Row]:
    base = Base("handed in, due at once", rates.at_once)
    return [Row(name="handed in for tomorrow", unit=UNIT, rounds=rates.delayed, base=base, target=HAND_IN)]


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


def _section(ground: Ground, rates: list[Row], lates: list[Row]) -> Section:
    scale = ground.scale
    shown = [row for row in rates if row.unit == UNIT]
    return Section(
        name="delays",
        title=f"Delays: {scale.drain:,} jobs for later, {scale.scheduled:,} that wait",
        rows=[*rates, *lates],
        charts=[bars("Jobs per second", shown), bars("Among those that wait", lates)],
        notes=[
            f"Handed in: {scale.bulk:,} jobs by one call, until they are flushed to disk.",
            "Just due: all are for the same moment, and a worker waits for it; the time runs from that moment to the "
            "last completion, as the store recorded it. Pending: `windlass worker --until-empty`, from the first "
            "claim to the last completion.",
            f"Late: {scale.trickling:,} jobs that come due one after the other, a millisecond apart, among "
            f"{scale.scheduled:,} for tomorrow; from a job's time to its handler's first line.",
            "The claim: 100 pending jobs, flush to disk included, in this process.",
        ],
    )
