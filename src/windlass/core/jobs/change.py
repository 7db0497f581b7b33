"""change and run_now: which jobs may be changed, and how a change of time affects a waiting one."""

import msgspec

from windlass.core.moments import Micros
from windlass.core.status import WAITING, Status

NO_WORKER = "no worker for type"
"""The reason of a parked job."""
WAITING_FOR_KEY = "waits for its concurrency key"
"""The reason of a blocked job that is due and waits for a free slot of its concurrency key."""


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """The fields to change; None: unchanged."""

    priority: int | None = None
    run_at: Micros | None = None
    delay: Micros | None = None
    """Counted from the store's clock; `run_at` wins if both are given."""
    payload: str | None = None
    queue: str | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it sets a time for the job."""
        return self.run_at is not None or self.delay is not None

    @property
    def is_repair(self) -> bool:
        """Whether it sets the payload and nothing else."""
        return self.payload is not None and self == JobChange(payload=self.payload)


class Timing(msgspec.Struct, frozen=True):
    """Status, reason and times of a waiting job."""

    status: Status
    reason: str | None
    run_at: Micros
    rank: Micros


def reschedule(before: Timing, change: JobChange, now: Micros) -> Timing:
    """The timing after the change. Only a new time changes it; a pending job keeps its rank."""
    if not change.is_timed:
        return before
    run_at = change.run_at if change.run_at is not None else now + (change.delay or 0)
    due = run_at <= now
    match before.status:
        case Status.PENDING if due:
            return Timing(before.status, before.reason, run_at, before.rank)
        case Status.SCHEDULED | Status.FAILED if due:
            return Timing(Status.PENDING, None, run_at, now)
        case Status.FAILED:
            return Timing(before.status, before.reason, run_at, run_at)
        case Status.BLOCKED if due or before.reason not in (NO_WORKER, WAITING_FOR_KEY):
            return Timing(before.status, before.reason, run_at, before.rank)
        case _:
            # A parked job, or one that waits for its key, must not be released before its new time.
            return Timing(Status.SCHEDULED, None, run_at, run_at)


def may_change(status: Status, change: JobChange) -> bool:
    """Whether a job may be changed: while it waits, and a dead one's payload, so that it can be retried with it."""
    return status in WAITING or (status is Status.DEAD and change.is_repair)


def may_run_now(status: Status) -> bool:
    """Whether a job waits for its time only, or is pending."""
    return status in WAITING - {Status.BLOCKED}
