"""What the tests of parts share: an app with handlers, held jobs, and stores that fail when told to."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.seed import new_job
from windlass import App, StoreUnavailable
from windlass.core.events import Event
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Outcome, is_suspect
from windlass.store.clock import since_boot
from windlass.worker.handlers.work import Work
from windlass.worker.shared_table import SharedTable

MINUTE = 60_000_000


@contextmanager
def table_of(entries: int = 100, *, valid: bool = True) -> Iterator[SharedTable]:
    """A table as a supervisor makes it, under a lease that holds or does not."""
    table = SharedTable.create(entries)
    table.valid_until = since_boot() + MINUTE if valid else 0
    try:
        yield table
    finally:
        table.close()


def claimed(job: NewJob | None = None, **fields: Any) -> Claimed:
    """A job as a claim returns it."""
    job = job or new_job(**fields)
    return Claimed(job.id, job.queue, job.type, job.payload, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def work_of(app: App, table: SharedTable, job: NewJob | Claimed) -> Work:
    """A job in a runner's hands."""
    held = job if isinstance(job, Claimed) else claimed(job)
    now = since_boot()
    index = table.prefetch(held.id, held.attempt, now, now + MINUTE)
    definition = app.registry.get(held.type)
    return Work(held, definition, index, now, definition.in_process or is_suspect(held))


def one_work(app: App, job: NewJob | Claimed) -> Work:
    """A job in hand, for what needs no table."""
    held = job if isinstance(job, Claimed) else claimed(job)
    definition = app.registry.get(held.type)
    return Work(held, definition, 0, since_boot(), definition.in_process or is_suspect(held))


class Outcomes:
    """Collects what slots report, and tells how many there are."""

    def __init__(self) -> None:
        self.all: list[tuple[Work, Outcome]] = []

    def __call__(self, work: Work, outcome: Outcome) -> None:
        self.all.append((work, outcome))

    @property
    def kinds(self) -> list[str]:
        return [type(outcome).__name__ for _, outcome in self.all]


class Listener:
    """Collects events."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.heard]


class Flaky:
    """A role of a store in which named verbs fail as often as told, before or after they are done."""

    def __init__(self, role: Any, verb: str, failures: Sequence[str]) -> None:
        self._role = role
        self._verb = verb
        self._failures = list(failures)
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._role, name)
        return self._flaky(method) if name == self._verb else method

    def _flaky(self, method: Any) -> Any:
        async def call(*args: Any) -> Any:
            self.asked.append(args[0] if args else None)
            failure = self._failures.pop(0) if self._failures else None
            if failure == "before":
                raise StoreUnavailable("not reached")
            answer = await method(*args)
            if failure == "after":
                raise StoreUnavailable("the reply was lost", maybe_done=True)
            return answer

        return call
