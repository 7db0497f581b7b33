"""Statistics of attempts that REST workers settled, recorded every few seconds."""

from collections.abc import Iterable

from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import Micros
from windlass.core.stats.meter import Meter, histogram
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


class RestMeters:
    """What has gathered since the last flush."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[str, str], Meter] = {}

    def add(self, ended: Iterable[tuple[Claimed, Settlement, Micros | None]]) -> None:
        """Attempts that were settled now, each with its length if it is known; requeued ones do not count."""
        figures = process_figures()
        for job, settlement, ran in ended:
            counter = "crashed" if settlement.crashes else _COUNTER.get(settlement.status)
            if counter is None:
                continue
            wait = max(0, job.claimed_at - max(job.run_at, job.created_at))
            times = {} if ran is None else {"wait": histogram([wait]), "run": histogram([ran])}
            new = Meter(queue=job.queue, type=job.type, **{counter: 1}, **times)  # type: ignore[arg-type]
            key = (job.queue, job.type)
            self._gathered[key] = self._gathered[key].add(new) if key in self._gathered else new
            if figures is None:
                continue
            if ran is not None:
                figures.observe(job.queue, job.type, [(wait, ran)], 1)
            for name in ending_counters(settlement):
                figures.count(name, job.queue, job.type, 1)

    async def flush(self, store: StatsStore) -> None:
        """Record them; a failure loses these."""
        gathered, self._gathered = self._gathered, {}
        if gathered:
            await store.record(list(gathered.values()))
