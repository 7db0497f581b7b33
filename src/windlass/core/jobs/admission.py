"""Admission: the status and rank of a new job, and its expiry."""

import msgspec

from windlass.core.jobs.job import NewJob
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status


class InitialState(msgspec.Struct, frozen=True):
    """The part of a new job that the store's clock decides."""

    status: Status
    run_at: Micros
    rank: Micros


def initial_state(job: NewJob, now: Micros, last: Micros | None = None) -> InitialState:
    """Due jobs are pending at once; others are scheduled.

    The rank is never in the past, so a job that was due last year does not overtake pending ones. Nor does a job that
    is enqueued after the clock was set back: `last` is the highest rank among the pending.
    """
    run_at = job.run_at if job.run_at is not None else now + job.delay
    status = Status.SCHEDULED if run_at > now else Status.PENDING
    if status is Status.PENDING and last is not None and last > now:
        return InitialState(status, run_at, last + 1)
    return InitialState(status, run_at, max(run_at, now))


EXPIRED = "expired"
"""The reason of an expired job."""


def expiry(job: NewJob, now: Micros) -> Micros | None:
    """When a new job expires; None: never."""
    if job.expires_at is not None or job.expires is None:
        return job.expires_at
    return now + job.expires


def is_expired(expires_at: Micros | None, now: Micros) -> bool:
    return expires_at is not None and expires_at <= now


def expires_instead(status: Status, expires_at: Micros | None, now: Micros) -> bool:
    """Whether a job expires instead: its attempt ended with a status that would run it again after its expiry."""
    return status not in FINISHED and is_expired(expires_at, now)
