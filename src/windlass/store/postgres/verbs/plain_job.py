"""The values of a job's statement, and jobs without keys, parents or schedule, which most are."""

from typing import Any

from windlass.core.codec import encode
from windlass.core.jobs.job import NewJob
from windlass.store.postgres.connection.hints import Hint


def is_plain(job: NewJob) -> bool:
    """Whether a new job has neither keys nor parents nor a schedule: most are so."""
    return (
        bool(job.fresh)
        and job.idempotency_key is None
        and job.concurrency_key is None
        and job.rate_cost is None
        and job.schedule is None
        and not job.parents
    )


def plain_values(job: NewJob, hint: Hint) -> dict[str, Any]:
    """The values of the statement `enqueue_one`."""
    return {"id": job.id, "payload": job.payload, **option_values(job, hint)}


def option_values(job: NewJob, hint: Hint) -> dict[str, Any]:
    """The values that every statement of an enqueue takes: options of the job but keys and parents, and the hint."""
    return {
        "queue": job.queue,
        "type": job.type,
        "sort_priority": -job.priority,
        "run_at": job.run_at,
        "delay": job.delay,
        "max_attempts": job.max_attempts,
        "tenant": job.tenant,
        "parent": job.parent,
        "flow": job.flow,
        "timeout": job.timeout,
        "expires": job.expires,
        "expires_at": job.expires_at,
        "tags": encode(job.tags, "tags") if job.tags else None,
        "meta": job.meta,
        "channel": hint.channel,
        # A delayed job needs no worker now.
        "hint": hint.given and (job.run_at is not None or not job.delay),
    }
