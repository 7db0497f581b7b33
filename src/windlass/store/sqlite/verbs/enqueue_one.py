"""Enqueue of one job without keys, parents or schedule, as most are: two statements without arrays."""

from windlass.core.codec import encode
from windlass.core.jobs.admission import expiry, initial_state
from windlass.core.jobs.job import NewJob
from windlass.store.sqlite.db import Db


def is_plain(job: NewJob) -> bool:
    """Whether a new job has neither keys nor parents nor a schedule."""
    return (
        job.idempotency_key is None
        and job.concurrency_key is None
        and job.rate_cost is None
        and job.schedule is None
        and not job.parents
    )


def enqueue_one(db: Db, job: NewJob) -> bool:
    """Store the job; returns False, and stores nothing, if its queue is new or closed, or its id may be known."""
    found = db.rows("queue_state", {"queue": job.queue, "sort_priority": -job.priority, "id": job.id})
    if not found:
        return False
    max_attempts, timeout, fair, last_rank = found[0]
    now = db.now
    state = initial_state(job, now, last_rank)
    db.run(
        "enqueue_one",
        {
            "id": job.id,
            "payload": job.payload,
            "queue": job.queue,
            "type": job.type,
            "status": str(state.status),
            "sort_priority": -job.priority,
            "rank": state.rank,
            "run_at": state.run_at,
            "max_attempts": job.max_attempts or max_attempts,
            "now": now,
            "tenant": job.tenant,
            "tenant_queue": (job.tenant or "") if fair else None,
            "parent": job.parent,
            "flow": job.flow,
            "timeout": timeout if job.timeout is None else job.timeout,
            "expires_at": expiry(job, now),
            "tags": encode(job.tags, "tags") if job.tags else None,
            "meta": job.meta,
        },
    )
    return True
