"""Lines for concurrency keys, looked at all at once and as often as it takes."""

from collections import defaultdict
from collections.abc import Iterable

from tests.model.record import Job
from windlass.core.moments import Micros
from windlass.core.status import Status


def move_up(jobs: Iterable[Job], now: Micros) -> None:
    """The first job gets a slot if fewer are taken than it says; then the next one is first."""
    keyed: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        if job.line is not None:
            keyed[job.queue, job.line].append(job)
    for alike in keyed.values():
        used = sum(job.slot for job in alike)
        waiting = (job for job in alike if job.status is Status.BLOCKED and not job.waits_for)
        for job in sorted(waiting, key=_place):
            if used >= job.limit:
                break
            job.slot = True
            job.come(now)
            used += 1


def _place(job: Job) -> tuple[int, Micros, str]:
    return 0 if job.strict else -job.priority, job.rank, job.id
