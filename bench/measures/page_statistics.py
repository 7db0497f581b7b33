"""Statistics of a large fleet: every pair of queue and type has attempts in every interval."""

from random import Random

from bench.stores.base import StoreBench
from windlass.core.stats.meter import INTERVAL, METER_RETENTION, Meter, histogram
from windlass.core.stats.samples import HOUR, MAX_PAIRS, MAX_QUEUES, MINUTE, Depth, start_of
from windlass.store.contract import Store

ENDED = 40
"""Attempts of a meter."""
WEEK = 168
AT_ONCE = 20
"""Steps that are written in one call."""


async def fill_statistics(store: Store, bench: StoreBench, address: str, pairs: list[tuple[str, str]]) -> None:
    """An hour of meters, an hour of minutes, a week of hours."""
    random = Random(1)
    meters = [_meter(random, queue, type_) for queue, type_ in pairs]
    await store.stats.record(meters)
    bench.repeat_meters(address, METER_RETENTION // INTERVAL)
    now, tables = (await store.stats.recent(INTERVAL)).now, bench.sample_tables(store)
    for step, count in ((MINUTE, 60), (HOUR, WEEK)):
        starts = [start_of(now, step) - step * (i + 1) for i in range(count)]
        for at in range(0, count, AT_ONCE):
            some = [_sampled(meter, start) for start in starts[at : at + AT_ONCE] for meter in meters[:MAX_PAIRS]]
            made = [Meter(queue="", type="", interval_start=start) for start in starts[at : at + AT_ONCE]]
            depths = [_depth(queue, start) for start in starts[at : at + AT_ONCE] for queue in _queues(pairs)]
            await tables.write_samples(step, [*some, *made], depths)


def _meter(random: Random, queue: str, type_: str) -> Meter:
    waits, runs = ([round(random.lognormvariate(mean, 0.8)) for _ in range(ENDED)] for mean in (10, 12))
    return Meter(queue=queue, type=type_, completed=ENDED - 1, failed=1, wait=histogram(waits), run=histogram(runs))


def _sampled(meter: Meter, start: int) -> Meter:
    return Meter(
        queue=meter.queue,
        type=meter.type,
        interval_start=start,
        completed=meter.completed,
        failed=meter.failed,
        wait=meter.wait,
        run=meter.run,
    )


def _queues(pairs: list[tuple[str, str]]) -> list[str]:
    return ["", *sorted({queue for queue, _ in pairs})[:MAX_QUEUES]]


def _depth(queue: str, start: int) -> Depth:
    return Depth(queue=queue, interval_start=start, jobs={"pending": 7, "running": 3}, max_jobs={"pending": 9})
