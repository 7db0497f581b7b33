"""Groups of jobs that one statement can insert, because only per-job columns differ."""

from operator import attrgetter
from typing import Any

from windlass.core.jobs.job import NewJob

PER_JOB = ("id", "payload", "idempotency_key", "concurrency_key")
"""Columns that differ between jobs of one task and batch."""

per_job_values = attrgetter(*PER_JOB)
shared_values = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in PER_JOB))

PER_CHILD = ("parent", "flow", "parents", "result_params")
"""Columns that differ between links of one task and batch."""

shared_child_values = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*PER_JOB, *PER_CHILD)))


def key_columns(job: NewJob) -> dict[str, Any]:
    """Concurrency key and start cost of a job, by column; NULL is the default."""
    return {
        "key_limit": job.key_limit,
        "key_strict": job.key_strict,
        "key_rate": None if job.key_rate is None else str(job.key_rate),
        "rate_cost": job.rate_cost,
    }
