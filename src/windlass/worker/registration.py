"""What a worker says about itself in the registry."""

import os
import socket

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.records import WorkerInfo
from windlass.version import __version__
from windlass.worker.crew import Crew


class Registration:
    """Measures the worker as it beats."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._ended: tuple[int, Micros] = (0, 0)
        self._per_minute = 0.0
        self.draining = False

    def info(self) -> WorkerInfo:
        """The worker as it is now."""
        crew = self._crew
        self._measure()
        return WorkerInfo(
            id=crew.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            queues=crew.queues,
            types=crew.types,
            processes=crew.config.processes,
            slots=crew.config.processes * crew.config.concurrency,
            per_minute=round(self._per_minute, 1),
            draining=self.draining,
        )

    def _measure(self) -> None:
        ended, now = sum(child.table.completed for child in self._crew.children), since_boot()
        before, then = self._ended
        if then and now - then > SECOND // 10:
            self._per_minute = max(0, ended - before) * 60 * SECOND / (now - then)
        self._ended = (ended, now)
