"""Measures a runner per settled batch, not per job, and records it every few seconds.

Nothing waits for it: measurements that are not recorded when the process dies or the store is away are lost.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random

from windlass.core.events import Emit, StoreFailed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import Micros
from windlass.core.stats.meter import COUNTERS, Bins, Histogram, Meter, bin_of
from windlass.core.status import Status
from windlass.observe.figures import Figures
from windlass.observe.reading import ending_counters
from windlass.store.contract_upkeep import StatsStore
from windlass.store.records import Settled
from windlass.worker.handlers.work import Work
from windlass.worker.store_retry import describe_error

FLUSH_EVERY = 2.0
SAMPLE = 8
"""Of 2 * SAMPLE and more alike in a batch, SAMPLE to 2 * SAMPLE are timed."""

Batch = Sequence[tuple[Work, Settlement]]
Measure = Callable[[Batch, Sequence[Settled]], None]

_ENDING = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.DEAD: "dead",
    Status.CANCELLED: "cancelled",
    Status.SCHEDULED: "snoozed",
    Status.PENDING: "crashed",
}


class _Gauge:
    """Counts and times of one type in one queue, added to in place for every batch."""

    __slots__ = ("counted", "runs", "waits")

    def __init__(self) -> None:
        self.counted = dict.fromkeys(COUNTERS, 0)
        self.waits: Bins = {}
        self.runs: Bins = {}


class Meters:
    """Collects measurements and records them."""

    def __init__(self, store: StatsStore, emit: Emit, figures: Figures | None = None) -> None:
        self._store = store
        self._emit = emit
        self._figures = figures
        self._random = Random()
        self._gauges: defaultdict[tuple[str, str], _Gauge] = defaultdict(_Gauge)

    def measure(self, batch: Batch, answers: Sequence[Settled]) -> None:
        """Measure ended and settled attempts; requeued and stale ones do not count.

        Only the first loop runs for each job. Of many similar attempts in one batch a sample is measured: the
        counters stay exact, and a type with few attempts is measured in full.
        """
        if Settled.STALE in answers:
            batch = [each for each, answer in zip(batch, answers, strict=True) if answer is not Settled.STALE]
        groups: defaultdict[tuple[str, str, Status], list[Work]] = defaultdict(list)
        for work, settlement in batch:
            if work.ended_on is not None:
                job = work.claimed
                groups[job.queue, job.type, settlement.status].append(work)
        for (queue, type_, status), works in groups.items():
            gauge = self._gauges[queue, type_]
            gauge.counted[_ENDING[status]] += len(works)
            times = self._sample(gauge, works)
            if self._figures is not None:
                self._figures.observe(queue, type_, times, len(works))
                if status is Status.COMPLETED:
                    self._figures.count("completed", queue, type_, len(works))
        if self._figures is not None and any(status is not Status.COMPLETED for *_, status in groups):
            rest = [(work, end) for work, end in batch if end.status is not Status.COMPLETED]
            count_ended(self._figures, [(work.claimed.type, end) for work, end in rest if work.ended_on is not None])

    def _sample(self, gauge: _Gauge, works: Sequence[Work]) -> list[tuple[Micros, Micros]]:
        """Add the times of a sample, and return them: waited, run."""
        step = len(works) // SAMPLE or 1
        waits, runs, times = gauge.waits, gauge.runs, []
        for work in works[int(self._random.random() * step) :: step] if step > 1 else works:
            job, started, ended = work.claimed, work.started_on, work.ended_on
            if started is None or ended is None:
                continue
            due = job.run_at if job.run_at > job.created_at else job.created_at
            # The claim is by the store's clock, the rest by this machine's.
            waited, ran = job.claimed_at - due + started - work.claimed_on, ended - started
            wait, run = bin_of(waited), bin_of(ran)
            waits[wait] = waits.get(wait, 0) + step
            runs[run] = runs.get(run, 0) + step
            times.append((waited, ran))
        return times

    async def run(self) -> None:
        """Record until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_EVERY)
            await self.flush()

    async def flush(self) -> None:
        """Record the collected measurements."""
        if not self._gauges:
            return
        meters = [_meter(*key, gauge) for key, gauge in self._gauges.items()]
        self._gauges.clear()
        try:
            await self._store.record(meters)
        except Exception as error:
            # Any error: a few statistics are lost, the jobs go on.
            self._emit(StoreFailed(doing="recording statistics", problem=describe_error(error), retried=False))


def count_ended(figures: Figures, ended: Iterable[tuple[str, Settlement]]) -> None:
    """Count settled attempts by how they ended, each with its type."""
    for (queue, type_, name), number in Counter(
        (each.queue, type_, name) for type_, each in ended for name in ending_counters(each)
    ).items():
        figures.count(name, queue, type_, number)


def _meter(queue: str, type_: str, gauge: _Gauge) -> Meter:
    return Meter(queue=queue, type=type_, wait=Histogram(gauge.waits), run=Histogram(gauge.runs), **gauge.counted)
