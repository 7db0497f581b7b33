"""Everything that a runner holds: from the reply of a claim until the settlement is durable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from windlass.client.tasks.registry import Registry
from windlass.client.tasks.task import Definition
from windlass.core.events import Emit
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import is_suspect
from windlass.core.log_events import JobsClaimed
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.worker.handlers.work import Work
from windlass.worker.shared_table import SharedTable

MAX_PREFETCH_WAIT: Micros = 2 * SECOND
"""How long a prefetched job may wait for a slot before it is requeued."""
MAX_PREFETCHED = 1000
LEAVE_TIME: Micros = 5 * SECOND
"""How long a type is left to other workers; then its jobs are tried again, since some may fit."""
AHEAD_SECONDS = 0.05
"""Prefetch jobs for this time ahead: slow jobs are never prefetched, fast ones share a round trip."""


class HeldJobs:
    """The runner's own list, mirrored in the table that its supervisor reads."""

    def __init__(
        self,
        registry: Registry,
        table: SharedTable,
        unsent: set[Work],
        *,
        isolate: bool = True,
        emit: Emit | None = None,
    ) -> None:
        """Without `isolate` a job that may have killed a runner gets no handler process: none can load the app.

        `emit` gets an event for every claim; None: claims are not logged.
        """
        self._emit = emit
        self.runner = ""
        self._registry = registry
        self._isolate = isolate
        self._table = table
        self._unsent = unsent
        # By attempt: a runner that lost its lease may claim a job again while its old attempt still runs.
        self._works: dict[tuple[JobId, int], Work] = {}
        self.by_queue: Counter[str] = Counter()
        self._left: dict[str, Micros] = {}
        """Until when a type is left to workers with another version of its task, by type."""

    def __len__(self) -> int:
        return len(self._works)

    def __iter__(self) -> Iterator[Work]:
        return iter(list(self._works.values()))

    def add(self, claimed: Sequence[Claimed]) -> list[Work]:
        """Add the jobs of a claim; jobs that a repeated claim returns again are held once."""
        if self._emit is not None and claimed:
            queues = tuple(sorted({job.queue for job in claimed}))
            self._emit(JobsClaimed(worker=self.runner, jobs=len(claimed), queues=queues))
        now, works = since_boot(), self._works
        definitions: dict[str, Definition] = {}
        added: list[Work] = []
        for job in claimed:
            key = (job.id, job.attempt)
            if key in works:
                continue
            definition = definitions.get(job.type)
            if definition is None:
                definition = definitions[job.type] = self._registry.get(job.type)
            index = self._table.prefetch(job.id, job.attempt, now, now + MAX_PREFETCH_WAIT)
            in_process = self._isolate and (definition.in_process or is_suspect(job))
            work = works[key] = Work(job, definition, index, now, in_process, self._unsent)
            self.by_queue[job.queue] += 1
            added.append(work)
        return added

    def leave(self, type_: str) -> None:
        """Leave a type for a while to workers with another version of its task."""
        self._left[type_] = since_boot() + LEAVE_TIME

    def claimable(self, types: tuple[str, ...]) -> tuple[str, ...]:
        """The types that are not left to others."""
        if not self._left:
            return types
        now = since_boot()
        self._left = {type_: until for type_, until in self._left.items() if until > now}
        return tuple(type_ for type_ in types if type_ not in self._left)

    def holds(self, id_: JobId, attempt: int) -> bool:
        """Whether this attempt is held."""
        return (id_, attempt) in self._works

    def holds_child_of(self, parent: JobId) -> bool:
        """Whether a child of this job is held."""
        return any(work.claimed.parent == parent for work in self._works.values())

    def find(self, id_: JobId, attempt: int) -> Work | None:
        """The attempt, if it is held."""
        return self._works.get((id_, attempt))

    def remove(self, works: Iterable[Work]) -> None:
        """Remove jobs that are settled, or no longer held here."""
        for work in works:
            job = work.claimed
            if self._works.pop((job.id, job.attempt), None) is not None:
                self.by_queue[job.queue] -= 1
                self._table.free(work.index)


class PrefetchSize:
    """Measures how fast this runner ends jobs."""

    def __init__(self) -> None:
        self._ended = 0
        self._at = 0.0
        self._rate = 0.0

    def measure(self, ended: int, now: float) -> None:
        """Record `ended` jobs in all at `now`, in seconds of any steady clock."""
        elapsed = now - self._at
        if self._at and elapsed > 0:
            rate = (ended - self._ended) / elapsed
            # Rises at once, falls by halves: a pause between batches is not a slow handler.
            self._rate = max(rate, self._rate / 2)
        self._ended, self._at = ended, now

    def reset(self) -> None:
        """Hold no prefetched jobs until jobs flow again."""
        self._rate = 0.0

    @property
    def jobs(self) -> int:
        """How many to hold beyond the free slots."""
        return min(MAX_PREFETCHED, int(self._rate * AHEAD_SECONDS))
