"""Admission: in which status a job is handed in, and the rank that orders it among the pending ones."""

import msgspec

from windlass.core.job import NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status


class Birth(msgspec.Struct, frozen=True):
    """What the store's clock decides about a new job."""

    status: Status
    run_at: Micros
    rank: Micros


def birth(job: NewJob, now: Micros, last: Micros | None = None) -> Birth:
    """Due jobs are pending at once; others wait for their time.

    The rank is never in the past: a job that says it was due last year does not overtake those that wait. Nor does
    one that comes when the clock was set back: `last` is the rank of the last who waits.
    """
    run_at = job.run_at if job.run_at is not None else now + job.delay
    status = Status.SCHEDULED if run_at > now else Status.PENDING
    if status is Status.PENDING and last is not None and last > now:
        return Birth(status, run_at, last + 1)
    return Birth(status, run_at, max(run_at, now))
