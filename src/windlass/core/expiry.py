"""Expiry: a job that has not started by its `expires_at` is not wanted any more."""

from windlass.core.job import NewJob
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status

EXPIRED = "expired"
"""The reason that such a job is cancelled with."""


def expiry(job: NewJob, now: Micros) -> Micros | None:
    """The moment at which a new job expires; None: never."""
    if job.expires_at is not None or job.expires is None:
        return job.expires_at
    return now + job.expires


def is_expired(expires_at: Micros | None, now: Micros) -> bool:
    """Whether a waiting job's time is over."""
    return expires_at is not None and expires_at <= now


def spoils(status: Status, expires_at: Micros | None, now: Micros) -> bool:
    """Whether an attempt that ended so leaves a job that may not run again: it is cancelled instead."""
    return status not in FINISHED and is_expired(expires_at, now)
