"""The report of `run_all`."""

from collections import Counter

import msgspec

from windlass.core.jobs.job import Job
from windlass.core.status import Status


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `run_all`: every job that ran, once each and in order, as it is now."""

    jobs: tuple[Job, ...]
    attempts: int
    """How many times a handler ran: more than there are jobs if some were retried."""
    errors: tuple[BaseException, ...]
    """The errors of handlers, in order; Snooze and Cancel are not errors."""

    @property
    def completed(self) -> tuple[Job, ...]:
        """Jobs whose handler returned."""
        return self._in(Status.COMPLETED)

    @property
    def failed(self) -> tuple[Job, ...]:
        """Jobs that wait for their next attempt."""
        return self._in(Status.FAILED)

    @property
    def dead(self) -> tuple[Job, ...]:
        """Jobs that will not be retried."""
        return self._in(Status.DEAD)

    @property
    def cancelled(self) -> tuple[Job, ...]:
        """Cancelled jobs."""
        return self._in(Status.CANCELLED)

    def _in(self, status: Status) -> tuple[Job, ...]:
        return tuple(job for job in self.jobs if job.status is status)

    def __repr__(self) -> str:
        statuses = Counter(str(job.status) for job in self.jobs)
        shown = [f"{number} {status}" for status, number in statuses.items()] or ["nothing ran"]
        troubles = [f"{job.type}: {job.error.type}: {job.error.message}" for job in self.jobs if job.error]
        return f"<{'; '.join([', '.join(shown), *troubles])}>"
