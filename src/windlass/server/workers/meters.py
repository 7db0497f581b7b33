"""Statistics of attempts that REST workers settled, recorded every few seconds."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import Micros
from windlass.core.stats.meter import Bins, Histogram, Meter, bin_of
from windlass.core.status import Status
from windlass.observe.process import process_figures
from windlass.observe.reading import ending_counters
from windlass.store.contract_upkeep import StatsStore

_COUNTER = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.DEAD: "dead",
    Status.CANCELLED: "cancelled",
    Status.SCHEDULED: "snoozed",
}
SAMPLE = 8
"""Of more settlements of one queue, type and end in a call, a sample of this size to twice it is timed."""

Ended = tuple[Claimed, Settlement, Micros | None]


class RestMeters:
    """The meters since the last flush."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[str, str], Meter] = {}

    def add(self, ended: Iterable[Ended]) -> None:
        """Add settled attempts, each with its length if it is known; requeued ones do not count.

        Only ends are known here: an attempt counts as started when it has ended.
        """
        alike: defaultdict[tuple[str, str, str], list[Ended]] = defaultdict(list)
        for each in ended:
            job, settlement, _ = each
            counter = "crashed" if settlement.crashes else _COUNTER.get(settlement.status)
            if counter is not None:
                alike[job.queue, job.type, counter].append(each)
        for (queue, type_, counter), group in alike.items():
            self._add(queue, type_, counter, group)

    def _add(self, queue: str, type_: str, counter: str, group: Sequence[Ended]) -> None:
        step = len(group) // SAMPLE or 1
        times = [
            (max(0, job.claimed_at - max(job.run_at, job.created_at)), ran)
            for job, _, ran in group[::step]
            if ran is not None
        ]
        waits, runs = (_weighed([time[index] for time in times], step) for index in (0, 1))
        new = Meter(queue=queue, type=type_, wait=waits, run=runs, **{counter: len(group)})
        known = self._gathered.get((queue, type_))
        self._gathered[queue, type_] = new if known is None else known.add(new)
        if (figures := process_figures()) is None:
            return
        figures.count("started", queue, type_, len(group))
        figures.observe(queue, type_, times, len(group))
        if counter == "completed":
            figures.count(counter, queue, type_, len(group))
            return
        for _, settlement, _ in group:
            for name in ending_counters(settlement):
                figures.count(name, queue, type_, 1)

    async def flush(self, store: StatsStore) -> None:
        """Record the meters; an error loses them."""
        gathered, self._gathered = self._gathered, {}
        if gathered:
            await store.record(list(gathered.values()))


def _weighed(times: Iterable[Micros], weight: int) -> Histogram:
    """A histogram in which each time counts as this many."""
    found: Bins = {}
    for each in times:
        index = bin_of(each)
        found[index] = found.get(index, 0) + weight
    return Histogram(found)
