"""enqueue: store new jobs, all or none; known ids and held keys answer with the job that stands."""

from collections.abc import Sequence
from typing import Any

from windlass.core.admission import Birth, birth
from windlass.core.codec import encode
from windlass.core.expiry import expiry
from windlass.core.idempotency import Verdict, judge, replaced_by
from windlass.core.ids import JobId
from windlass.core.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, Enqueued, NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.errors import KeyConflict
from windlass.store.sqlite.cancel import call_off
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.keys import Holder, Place, hold, holders, place_of
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
    contest = Contest(db, jobs)
    answers: list[Enqueued] = []
    fresh: list[tuple[Any, ...]] = []
    for job in jobs:
        if job.id in standing:
            answers.append(Enqueued(job.id, existing=True))
            continue
        born = birth(job, now, last[job.queue, job.priority])
        if job.idempotency_key is not None and (holder := contest.enter(job, born.status)) is not None:
            answers.append(Enqueued(holder, existing=True))
            continue
        standing.add(job.id)
        fresh.append(_row(job, born, now, budgets[job.queue]))
        answers.append(Enqueued(job.id))
    if fresh:
        db.run_many("enqueue", fresh)
        call_off(db, contest.replaced)
        hold(db, contest.taken)
    return answers


class Contest:
    """The keys of one hand-in: its jobs meet who has them, and each other, in their order."""

    def __init__(self, db: Db, jobs: Sequence[NewJob]) -> None:
        self._places = {
            (job.queue, job.idempotency_key): place_of(job.queue, job.idempotency_key)
            for job in jobs
            if job.idempotency_key is not None
        }
        self._held: dict[Place, Holder] = holders(db, self._places.values())
        self.taken: dict[Place, JobId] = {}
        self.replaced: dict[JobId, str] = {}

    def enter(self, job: NewJob, status: Status) -> JobId | None:
        """None: the job has its key, and stands. Else the id of the one that stands instead of it."""
        assert job.idempotency_key is not None
        place = self._places[job.queue, job.idempotency_key]
        holder = self._held.get(place)
        if holder is not None:
            # Its own window, after its id was forgotten: still the same job.
            verdict = Verdict.ANSWER if holder.job == job.id else judge(holder.status, job.on_conflict)
            if verdict is Verdict.REFUSE:
                raise KeyConflict(job.idempotency_key, holder.job)
            if verdict is Verdict.ANSWER:
                return holder.job
            self.replaced[holder.job] = replaced_by(job.id)
        self._held[place] = Holder(job.id, status)
        self.taken[place] = job.id
        return None


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
        expiry(job, now),
        encode(job.tags, "tags") if job.tags else None,
        job.meta,
        job.idempotency_window,
    )
