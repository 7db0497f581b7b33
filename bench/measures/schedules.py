"""Schedules: how long after one tick of very many the first and the last of their jobs start."""

import asyncio
import time
from datetime import timedelta

from bench import tasks
from bench.context import BenchContext
from bench.measures.latency import stamps
from bench.report.figures import Row, Section, bars
from bench.targets import at_most
from bench.worker import Worker
from windlass.bench.process import BenchFailed
from windlass.core.moments import SECOND, Micros, to_datetime, to_micros
from windlass.core.schedules.schedule import ScheduleSettings, settings
from windlass.store.clock import SystemClock
from windlass.store.open import open_store

UNIT = "ms"
LAST = at_most(1_500.0)
CHUNK = 1_000
"""Schedules per call."""


def measure(context: BenchContext) -> Section:
    """A worker waits for the tick, round by round."""
    first, last = list[float](), list[float]()
    for _ in context.rounds("schedules"):
        taken = _tick(context)
        first.append(min(taken))
        last.append(max(taken))
    rows = [
        Row(name="first job started", unit=UNIT, rounds=first),
        Row(name="last job started", unit=UNIT, rounds=last, target=LAST),
    ]
    return Section(
        name="schedules",
        title=f"Schedules: {context.scale.schedules:,} with the same tick",
        rows=rows,
        charts=[bars("After the tick", rows)],
        notes=[
            "From the moment of the tick to the handler's first line, on the clock that all processes share; "
            "`windlass worker` with default settings coordinates and runs. Each handler writes a line to a file."
        ],
    )


def _tick(context: BenchContext) -> list[float]:
    """Milliseconds after the tick at which each job started."""
    scale = context.scale
    with context.store() as address:
        path = context.scratch() / "stamps"
        with Worker(address, context.folder, {tasks.STAMPS: str(path)}).start() as process:
            process.ends_within(scale.start_seconds)
            clock = SystemClock()
            tick = next_minute(clock.wall() + round(scale.ahead_seconds * SECOND))
            asyncio.run(_declare(address, scale.schedules, tick))
            if clock.wall() >= tick:
                raise BenchFailed(f"the tick came before all {scale.schedules:,} schedules were declared")
            process.ends_within((tick - clock.wall()) / SECOND)
            return stamps(process, path, scale.schedules)


def next_minute(moment: Micros) -> Micros:
    """The first full minute after a moment: cron ticks are on full minutes."""
    return to_micros(to_datetime(moment).replace(second=0, microsecond=0) + timedelta(minutes=1))


async def _declare(address: str, schedules: int, tick: Micros) -> None:
    sent = time.monotonic_ns() + (tick - SystemClock().wall()) * 1000
    at = to_datetime(tick)
    rules: ScheduleSettings = settings(tasks.stamp.job(sent), cron=f"{at.minute} {at.hour} * * *", tz="UTC")
    store = open_store(address)
    try:
        for start in range(0, schedules, CHUNK):
            numbers = range(start, min(start + CHUNK, schedules))
            await store.schedules.declare({f"schedule {number}": rules for number in numbers})
    finally:
        await store.close()
