"""cancel, retry, delete, run_now, change: verbs for operators; each is a no-op if the job's status forbids it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from windlass.core.flow.key_slots import key_slot_after, or_waiting_for_key
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange, Timing, may_change, may_run_now, reschedule
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.status import RETRYABLE, Status
from windlass.store.drive import drive
from windlass.store.keys import Keyed
from windlass.store.records import Transition
from windlass.store.rows import FINISHED_COLUMNS, add_attempt, last_attempt
from windlass.store.sql.queues import add_missing
from windlass.store.sql.versions import stale_jobs
from windlass.store.sqlite.db import Db, SharedDb, array
from windlass.store.sqlite.limits.idempotency_keys import release, take
from windlass.store.sqlite.limits.key_queue import KeyQueue, status_after_move
from windlass.store.sqlite.verbs.cancel import cancel_waiting
from windlass.store.sqlite.verbs.dependents import revive_dependents, revive_waiting
from windlass.store.sqlite.verbs.prune import drop


class Found(NamedTuple):
    """A row of the statement `find_job`."""

    status: Status
    queue: str
    idempotency_key: str | None
    finished: int
    concurrency_key: str | None
    pending_parents: int

    @property
    def key_queues(self) -> list[KeyQueue]:
        """The queue and concurrency key of the job, if it has a key."""
        return [] if self.concurrency_key is None else [(self.queue, self.concurrency_key)]


def _find(db: Db, id_: JobId) -> Found | None:
    rows = db.rows("find_job", {"id": id_})
    return Found(Status(rows[0][0]), *rows[0][1:]) if rows else None


def _each(
    db: Db, ids: Sequence[JobId], versions: Versions, verb: Callable[[JobId], Transition | None]
) -> list[Transition | None]:
    """Apply a verb to each job, except to jobs that have another version; returns the answers."""
    stale = drive(stale_jobs(SharedDb(db), versions)) if versions else {}
    return [stale[id_] if id_ in stale else verb(id_) for id_ in ids]


def cancel(db: Db, ids: Sequence[JobId], reason: str, versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Ask running jobs to stop, and cancel waiting ones: all at once, so that none of them gets a freed key slot."""
    waiting: dict[JobId, str] = {}
    answers = _each(db, ids, versions, lambda id_: _cancel(db, id_, reason, waiting))
    cancel_waiting(db, waiting)
    return answers


def _cancel(db: Db, id_: JobId, reason: str, waiting: dict[JobId, str]) -> Transition | None:
    """Ask a running job to stop; add a waiting one to `waiting`, which the caller cancels."""
    job = _find(db, id_)
    if job is None:
        return None
    if job.finished or id_ in waiting:
        return Transition(id_, Status.CANCELLED if id_ in waiting else job.status, done=False)
    if job.status is Status.RUNNING:
        db.run("request_cancel", {"id": id_, "reason": reason, "now": db.now})
        return Transition(id_, Status.RUNNING, done=True)
    waiting[id_] = reason
    return Transition(id_, Status.CANCELLED, done=True)


def retry(db: Db, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Make jobs pending with a fresh budget; attempt numbers continue, and idempotency keys are taken again.

    Jobs that were cancelled because of one of these wait for it again; one with pending parents waits for those.
    """
    return _each(db, ids, versions, lambda id_: _retry(db, id_))


def _retry(db: Db, id_: JobId) -> Transition | None:
    job = _find(db, id_)
    if job is None:
        return None
    if job.status not in RETRYABLE:
        return Transition(id_, job.status, done=False)
    if not job.finished:
        db.run("retry_failed", {"id": id_, "now": db.now})
        return Transition(id_, status_after_move(db, id_, Status.PENDING, job.key_queues), done=True)
    if job.pending_parents and (failed := db.rows("failed_parents", {"id": id_})):
        return Transition(id_, job.status, done=False, parent=failed[0][0])
    if job.idempotency_key is not None and (holder := take(db, job.queue, job.idempotency_key, id_)):
        return Transition(id_, job.status, done=False, holder=holder)
    if job.pending_parents:
        revive_waiting(db, {id_: job.queue})
        revive_dependents(db, id_)
        return Transition(id_, Status.BLOCKED, done=True)
    db.run("revive", {"id": id_, "now": db.now, "attempts": _all_attempts(db, id_)})
    db.run("drop_history", {"ids": array([id_])})
    db.add_history_count(job.queue, job.status, -1)
    revive_dependents(db, id_)
    return Transition(id_, status_after_move(db, id_, Status.PENDING, job.key_queues), done=True)


def _all_attempts(db: Db, id_: JobId) -> str | None:
    """All ended attempts, including the last one: the job's columns have it, and the next attempt overwrites them."""
    rows = db.select(f"SELECT {FINISHED_COLUMNS} FROM windlass_history WHERE id = :id", {"id": id_})
    fields: dict[str, Any] = dict(zip(FINISHED_COLUMNS.split(", "), rows[0], strict=True))
    newest = last_attempt(fields)
    kept: str | None = fields["attempts"]
    return add_attempt(kept, newest) if newest else kept


def delete(db: Db, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Drop finished jobs."""
    return _each(db, ids, versions, lambda id_: _delete(db, id_))


def _delete(db: Db, id_: JobId) -> Transition | None:
    job = _find(db, id_)
    if job is None:
        return None
    if job.finished:
        drop(db, [id_])
    return Transition(id_, job.status, done=bool(job.finished))


def run_now(db: Db, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Make jobs pending, or wait for their key, behind those that wait already; a pending job keeps its rank."""
    return _each(db, ids, versions, lambda id_: _run_now(db, id_))


def _run_now(db: Db, id_: JobId) -> Transition | None:
    job = _find(db, id_)
    if job is None:
        return None
    if not may_run_now(job.status):
        return Transition(id_, job.status, done=False)
    db.run("run_now", {"id": id_, "now": db.now})
    return Transition(id_, status_after_move(db, id_, Status.PENDING, job.key_queues), done=True)


def change(
    db: Db, ids: Sequence[JobId], change: JobChange, versions: Versions = ANY_VERSION
) -> list[Transition | None]:
    """Change jobs, each completely or not at all; the idempotency key moves with the job to another queue."""
    return _each(db, ids, versions, lambda id_: _change(db, id_, change))


def _change(db: Db, id_: JobId, wanted: JobChange) -> Transition | None:
    rows = db.rows("changeable", {"id": id_})
    if not rows:
        return None
    status, reason, run_at, rank, queue, idempotency_key, key, key_slot = rows[0]
    before = Timing(Status(status), reason, run_at, rank)
    if not may_change(before.status, wanted):
        return Transition(id_, before.status, done=False)
    if before.status is Status.DEAD:
        db.run("repair", {"id": id_, "payload": wanted.payload})
        return Transition(id_, before.status, done=True)
    target = wanted.queue or queue
    if target != queue and (holder := _move_key(db, Keyed(id_, queue, idempotency_key, None), target)):
        return Transition(id_, before.status, done=False, holder=holder)
    after = reschedule(before, wanted, db.now)
    key_slot = key_slot_after(key_slot, after, wanted, target != queue)
    after = or_waiting_for_key(after, key, key_slot)
    db.run("change", {"id": id_, "queue": target, "key_slot": key_slot, **_values(after, wanted), "now": db.now})
    key_queues = {(queue, key), (target, key)} if key is not None else set()
    return Transition(id_, status_after_move(db, id_, after.status, key_queues), done=True)


def _move_key(db: Db, job: Keyed, target: str) -> JobId | None:
    """Move the idempotency key to another queue; returns None, or the id of the key's holder there."""
    if job.key is not None and (holder := take(db, target, job.key, job.id)):
        return holder
    release(db, [job])
    drive(add_missing(SharedDb(db), [target]))
    return None


def _values(after: Timing, wanted: JobChange) -> dict[str, Any]:
    return {
        "status": str(after.status),
        "reason": after.reason,
        "run_at": after.run_at,
        "rank": after.rank,
        "sort_priority": None if wanted.priority is None else -wanted.priority,
        "payload": wanted.payload,
        "timed": wanted.is_timed,
    }
