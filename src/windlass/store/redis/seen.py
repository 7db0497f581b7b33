"""Where jobs were seen last: an id does not tell its queue, and whoever hands a job in often asks for it soon."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from threading import Lock

from windlass.core.ids import JobId

MOST_REMEMBERED = 10_000
MOST_AT_ONCE = 1_000
"""More than so many of one hand-in are not asked for one by one."""


class Seen:
    """The queues of jobs that this process handed in or looked at. A hint only: a job may have moved or gone."""

    def __init__(self) -> None:
        self._queues: OrderedDict[JobId, str] = OrderedDict()
        self._lock = Lock()

    def note(self, queue: str, ids: Sequence[JobId]) -> None:
        """They are there; the oldest are forgotten for it."""
        if len(ids) > MOST_AT_ONCE:
            return
        with self._lock:
            for id_ in ids:
                self._queues[id_] = queue
            while len(self._queues) > MOST_REMEMBERED:
                self._queues.popitem(last=False)

    def places(self, ids: Iterable[JobId]) -> dict[str, list[JobId]]:
        """Those that were seen, by queue."""
        found: dict[str, list[JobId]] = defaultdict(list)
        for id_ in ids:
            queue = self._queues.get(id_)
            if queue is not None:
                found[queue].append(id_)
        return found
