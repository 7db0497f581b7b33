"""enqueue: store new jobs, all or none; known ids and held keys answer with the job that stands."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from windlass.core.admission import Birth, birth
from windlass.core.codec import encode
from windlass.core.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, Enqueued, NewJob
from windlass.core.moments import Micros
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.queues import make


def enqueue(db: Db, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert what is new. An id is known while it is live, in history or under a tombstone."""
    standing = {row[0] for row in db.rows("known", {"ids": array(job.id for job in jobs)})}
    budgets = {name: (attempts, timeout) for name, attempts, timeout in db.rows("budgets")}
    for name in {job.queue for job in jobs} - budgets.keys():
        make(db, name)
        budgets[name] = (DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT)
    now = db.now
    last = {place: _last_rank(db, *place) for place in {(job.queue, job.priority) for job in jobs}}
    answers: list[Enqueued] = []
    fresh: list[tuple[Any, ...]] = []
    for job in jobs:
        existing = job.id in standing
        holder = None if existing or job.idempotency_key is None else take_key(db, job)
        if existing or holder is not None:
            answers.append(Enqueued(holder or job.id, existing=True))
            continue
        standing.add(job.id)
        fresh.append(_row(job, birth(job, now, last[job.queue, job.priority]), now, budgets[job.queue]))
        answers.append(Enqueued(job.id))
    if fresh:
        db.run_many("enqueue", fresh)
    return answers


def take_key(db: Db, job: NewJob) -> str | None:
    """Take the job's idempotency key, or say which job holds it."""
    assert job.idempotency_key is not None
    return take(db, job.queue, job.idempotency_key, job.id)


def take(db: Db, queue: str, key: str, job_id: str) -> str | None:
    """Take a key for a job: None if it is ours now, else the id of the job that stands."""
    values = {"queue": queue, "hash": hash_key(key), "job": job_id}
    if db.run("take_key", values):
        return None
    holder: str = db.rows("key_holder", values)[0][0]
    return None if holder == job_id else holder


def hash_key(key: str) -> bytes:
    """Keys may be long; their hashes are the index."""
    return sha256(key.encode()).digest()


def _last_rank(db: Db, queue: str, priority: int) -> Micros | None:
    rows = db.rows("last_rank", {"queue": queue, "urgency": -priority})
    return rows[0][0] if rows else None


def _row(job: NewJob, born: Birth, now: Micros, budget: tuple[int, Micros]) -> tuple[Any, ...]:
    attempts, timeout = budget
    return (
        job.id,
        job.queue,
        job.type,
        job.payload,
        str(born.status),
        -job.priority,
        born.rank,
        born.run_at,
        job.max_attempts or attempts,
        now,
        now,
        job.idempotency_key,
        job.concurrency_key,
        job.tenant,
        job.parent,
        job.flow,
        encode(job.parents, "parents") if job.parents else None,
        timeout if job.timeout is None else job.timeout,
        now + job.expires if job.expires is not None else None,
        encode(job.tags, "tags") if job.tags else None,
        job.meta,
    )
