"""Idempotency keys: one row for each held key."""

from collections.abc import Collection, Iterable

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.keys import Holder, Keyed, KeyRef, key_ref
from windlass.store.sqlite.db import Db, array


def holders(db: Db, wanted: Collection[KeyRef]) -> dict[KeyRef, Holder]:
    """The holders of these keys, by one read."""
    if not wanted:
        return {}
    rows = db.rows("key_holders", {"keys": array(wanted), "now": db.now})
    return {(queue, hash_): Holder(job, Status(status) if status else None) for queue, hash_, job, status in rows}


def hold(db: Db, taken: dict[KeyRef, JobId]) -> None:
    """Give these keys to these jobs."""
    if taken:
        db.run_many("set_key_holder", [(*ref, job) for ref, job in taken.items()])


def take(db: Db, queue: str, key: str, job: JobId) -> JobId | None:
    """Take a key for a job; returns None, or the id of another job that holds the key."""
    ref = key_ref(queue, key)
    if db.run("take_key", {"queue": queue, "hash": ref[1], "job": job, "now": db.now}):
        return None
    ((_, _, holder, _),) = db.rows("key_holders", {"keys": array([ref]), "now": db.now})
    return str(holder)


def release(db: Db, finished: Iterable[Keyed]) -> None:
    """Free the keys of finished jobs, at once or after their windows."""
    now = db.now
    freed, kept = [], []
    for job in finished:
        if job.key is None:
            continue
        row = (*key_ref(job.queue, job.key), job.id)
        if job.window:
            kept.append((now + job.window, *row))
        else:
            freed.append(row)
    if freed:
        db.run_many("free_key", freed)
    if kept:
        db.run_many("keep_key", kept)
