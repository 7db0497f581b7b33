"""The queues in which jobs were last seen: an id does not tell its queue, and producers often ask for new jobs."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from threading import Lock

from windlass.core.ids import JobId

MAX_REMEMBERED = 10_000
MAX_AT_ONCE = 1_000
"""Larger batches are not remembered."""


class JobLocations:
    """The queues of jobs that this process enqueued or read. A hint only: a job may have moved or be dropped."""

    def __init__(self) -> None:
        self._queues: OrderedDict[JobId, str] = OrderedDict()
        self._lock = Lock()

    def note(self, queue: str, ids: Sequence[JobId]) -> None:
        """They are there; the oldest are forgotten for it."""
        if len(ids) > MAX_AT_ONCE:
            return
        with self._lock:
            for id_ in ids:
                self._queues[id_] = queue
            while len(self._queues) > MAX_REMEMBERED:
                self._queues.popitem(last=False)

    def places(self, ids: Iterable[JobId]) -> dict[str, list[JobId]]:
        """Those that were seen, by queue."""
        found: dict[str, list[JobId]] = defaultdict(list)
        for id_ in ids:
            queue = self._queues.get(id_)
            if queue is not None:
                found[queue].append(id_)
        return found
