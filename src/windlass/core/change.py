"""change and run_now: what becomes of a waiting job when a person moves its time."""

import msgspec

from windlass.core.moments import Micros
from windlass.core.status import WAITING, Status

PARKED = "no worker for type"
"""The reason of a blocked job that was pending until it turned out that no live worker knows its type."""
IN_LINE = "in line for its key"
"""The reason of a blocked job that is due, and waits until its concurrency key has a free slot."""


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be different; None: as it was."""

    priority: int | None = None
    run_at: Micros | None = None
    delay: Micros | None = None
    """Counted from the store's clock; `run_at` wins if both are given."""
    payload: str | None = None
    queue: str | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it says when the job shall run: then that alone holds, not what was said of it before."""
        return self.run_at is not None or self.delay is not None


class Timing(msgspec.Struct, frozen=True):
    """Where a job stands in time."""

    status: Status
    reason: str | None
    run_at: Micros
    rank: Micros


def retimed(before: Timing, change: JobChange, now: Micros) -> Timing:
    """Its place after the change. Only a new time moves it; a job that waits for its turn keeps its rank."""
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
        case Status.BLOCKED if due or before.reason not in (PARKED, IN_LINE):
            return Timing(before.status, before.reason, run_at, before.rank)
        case _:
            # Also one that is parked or in line: what it waits for may come too early now.
            return Timing(Status.SCHEDULED, None, run_at, run_at)


def may_change(status: Status) -> bool:
    """Whether a job may be changed at all: not while somebody works on it, nor when it is over."""
    return status in WAITING


def may_run_now(status: Status) -> bool:
    """Whether a job waits for nothing but its time, or for nothing at all."""
    return status in WAITING - {Status.BLOCKED}
