"""Jobs of every kind that are in their handlers before, during and well after a fault."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support.processes import let_pass, until
from tests.torture.nemesis import FOREVER, Nemesis
from windlass import NewJob, WindlassError
from windlass.core.ids import new_id

QUEUE = "long"
OF_EACH_KIND = ("long_async", "long_thread", "long_process")
TYPES = OF_EACH_KIND * 2
"""Fewer than a runner has slots: one that got all of them still claims as soon as the store is back."""
MARGIN = 1.0
"""Seconds that a fault lasts longer than a lease, at least."""


@contextmanager
def long_fault(
    nemesis: Nemesis, kind: str, types: Sequence[str] = TYPES, *, hides: bool = False, seconds: float | None = None
) -> Iterator[float]:
    """A fault without victims, for as many seconds as this gives: no attempt may end because of it."""
    if seconds is None:
        seconds = nemesis.yard.lease + MARGIN + nemesis.dice.uniform(0, MARGIN)
    start_long_jobs(nemesis, seconds, types)
    with nemesis.fault(kind, [], hides=hides):
        yield seconds


def start_long_jobs(nemesis: Nemesis, seconds: float, types: Sequence[str] = TYPES) -> None:
    """Until they are in their handlers; they stay there for so long, and for two leases more."""
    for worker in nemesis.workers:
        nemesis.until_claiming(worker)
    payload = f'{{"seconds":{seconds + 2 * nemesis.yard.lease + MARGIN:.3f}}}'
    jobs = [NewJob(id=new_id(), type=each, payload=payload, queue=QUEUE, max_attempts=1000) for each in types]
    until(lambda: _is_enqueued(nemesis, jobs), "the long jobs are stored", FOREVER)
    until(lambda: all(_has_started(nemesis, job) for job in jobs), "the long jobs run", FOREVER)


def _is_enqueued(nemesis: Nemesis, jobs: list[NewJob]) -> bool:
    try:
        nemesis.yard.app.enqueue_many(jobs)
    except WindlassError:
        return False  # the store is not back yet
    return True


def _has_started(nemesis: Nemesis, job: NewJob) -> bool:
    if (nemesis.yard.folder / f"started-{job.id}").exists():
        return True
    let_pass(0.1)
    try:
        return nemesis.yard.app.jobs.get(job.id).finished  # it may have been cancelled
    except WindlassError:
        return False
