"""Idempotency keys: who has which. One row per key, whatever became of the others that had it."""

from collections.abc import Collection, Iterable

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.keys import Holder, Keyed, Place, place_of
from windlass.store.sqlite.db import Db, array


def holders(db: Db, wanted: Collection[Place]) -> dict[Place, Holder]:
    """Who has these keys: one look for all of them, and none if there are none."""
    if not wanted:
        return {}
    rows = db.rows("key_holders", {"keys": array(wanted), "now": db.now})
    return {(queue, hash_): Holder(job, Status(status) if status else None) for queue, hash_, job, status in rows}


def hold(db: Db, taken: dict[Place, JobId]) -> None:
    """These jobs have these keys now."""
    if taken:
        db.run_many("hold_key", [(*place, job) for place, job in taken.items()])


def take(db: Db, queue: str, key: str, job: JobId) -> JobId | None:
    """Take a key for a job: None if it is ours now, else the id of the job that stands."""
    place = place_of(queue, key)
    values = {"queue": queue, "hash": place[1], "job": job, "now": db.now}
    if db.run("take_key", values):
        return None
    ((_, _, holder, _),) = db.rows("key_holders", {"keys": array([place]), "now": db.now})
    return str(holder)


def release(db: Db, ended: Iterable[Keyed]) -> None:
    """Jobs have ended: their keys are free, at once or after their windows."""
    now = db.now
    freed, kept = [], []
    for job in ended:
        if job.key is None:
            continue
        row = (*place_of(job.queue, job.key), job.id)
        if job.window:
            kept.append((now + job.window, *row))
        else:
            freed.append(row)
    if freed:
        db.run_many("free_key", freed)
    if kept:
        db.run_many("keep_key", kept)
