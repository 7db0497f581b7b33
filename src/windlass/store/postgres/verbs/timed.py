"""New jobs that each have their own time, such as reminders, by one statement."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from windlass.core.jobs.job import NewJob
from windlass.store.postgres.connection.db import pack_numbers
from windlass.store.rows import PER_JOB, shared_values

_TIMES = ("run_at", "delay")
_like_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*PER_JOB, *_TIMES)))


def is_timed(job: NewJob) -> bool:
    """Whether a new job has its own time, and neither a concurrency key nor an id that may be known."""
    return bool(job.fresh and (job.delay or job.run_at is not None) and job.concurrency_key is None)


def statement_of(job: NewJob) -> Any:
    """A value that is equal for jobs that one statement can store."""
    return _like_of(job) if is_timed(job) else shared_values(job)


def times_of(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """When each job is due: a moment, or a delay."""
    return {
        "run_ats": pack_numbers(job.run_at for job in jobs),
        "delays": pack_numbers(job.delay for job in jobs),
    }
