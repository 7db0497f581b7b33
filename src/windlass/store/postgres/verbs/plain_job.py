"""The parameters of the statements that store jobs; plain jobs, which have no keys, parents or schedule, as most."""

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.core.codec import encode
from windlass.core.jobs.job import NewJob
from windlass.store.postgres.connection.db import pack_ids, pack_texts
from windlass.store.postgres.connection.hints import Hint
from windlass.store.postgres.verbs.parents import parent_columns
from windlass.store.rows import PER_JOB, key_columns, per_job_values

_OF_HINT = ("channel", "hint")


def is_plain(job: NewJob) -> bool:
    """Whether a new job has neither keys nor parents nor a schedule."""
    return (
        bool(job.fresh)
        and job.idempotency_key is None
        and job.concurrency_key is None
        and job.rate_cost is None
        and job.schedule is None
        and not job.parents
    )


def plain_values(job: NewJob, hint: Hint) -> dict[str, Any]:
    """The parameters of the statement `enqueue_one`."""
    return {"id": job.id, "payload": job.payload, **option_values(job, hint)}


def option_values(job: NewJob, hint: Hint) -> dict[str, Any]:
    """The parameters that all statements of an enqueue share: options other than keys and parents, and the hint."""
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
        # A delayed job wakes no worker.
        "hint": hint.given and (job.run_at is not None or not job.delay),
    }


def common_values(job: NewJob, hint: Hint) -> Mapping[str, Any]:
    """The parameters that jobs of one kind have in common."""
    return {
        **option_values(job, hint),
        "parents": encode(job.parents, "parents") if job.parents else None,
        "window": job.idempotency_window,
        **key_columns(job),
        "schedule": job.schedule,
        "tick": job.tick,
        "has_dependents": False,
    }


def own_values(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """The parameters that differ between jobs of one kind."""
    return {
        "ids": pack_ids([job.id for job in jobs]),
        "payloads": [job.payload for job in jobs],
        "keys": pack_texts([job.idempotency_key for job in jobs]),
        "concurrency_keys": pack_texts([job.concurrency_key for job in jobs]),
    }


def row_values(job: NewJob, hint: Hint, *, has_dependents: bool) -> dict[str, Any]:
    """All values of one job that are not NULL, for the statement `enqueue_rows`."""
    own = dict(zip(PER_JOB, per_job_values(job), strict=True))
    values = {**common_values(job, hint), **own, **parent_columns(job), "has_dependents": has_dependents}
    return {name: value for name, value in values.items() if value is not None and name not in _OF_HINT}
