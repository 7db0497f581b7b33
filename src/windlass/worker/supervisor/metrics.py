"""The metrics of a worker: the counts of its supervisor and of its runners, also of ended ones."""

from collections.abc import Set

from windlass.observe.exposition import expose
from windlass.observe.families import Family, gauge, process_families
from windlass.observe.figures import Figures
from windlass.observe.process import process_figures
from windlass.observe.reading import Reading
from windlass.worker.config import WorkerConfig
from windlass.worker.shared_table import State
from windlass.worker.supervisor.runner_process import RunnerProcess


class WorkerMetrics:
    """Adds up the figures of a supervisor and its runners. Counters never go down when a runner ends."""

    def __init__(self, config: WorkerConfig, runners: Set[RunnerProcess]) -> None:
        self._config = config
        self._runners = runners
        self._past = Reading()
        """Counts of the runners that have ended."""

    def retire(self, figures: Figures | None) -> None:
        """Keep the counts of a runner that has ended."""
        if figures is not None:
            self._past.add(figures.read())
            figures.close()

    async def expose(self, accept: str) -> tuple[str, bytes]:
        """The content type and the text of a scrape."""
        sources = [process_figures(), *(child.figures for child in self._runners)]
        total = Reading()
        total.add(self._past)
        for figures in filter(None, sources):
            total.add(figures.read())
        self._past.name(total.jobs)
        return expose([*process_families(total), *self._slots()], accept)

    def _slots(self) -> list[Family]:
        slots = self._config.processes * self._config.concurrency
        busy = sum(entry.state is State.STARTED for child in self._runners for entry in child.table.held())
        return [
            gauge("windlass_slots", "Slots of this worker.", [((), slots)]),
            gauge("windlass_slots_busy", "Slots in which a handler runs.", [((), busy)]),
        ]
