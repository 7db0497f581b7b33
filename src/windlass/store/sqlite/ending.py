"""How an attempt ends, one job at a time: the path of everything that is not a plain completion."""

from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status
from windlass.store.ending import Ending, Running, ending_values, resolve
from windlass.store.keys import Keyed
from windlass.store.queues import retention_of
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.heirs import follow
from windlass.store.sqlite.keys import release
from windlass.store.sqlite.line import move_up
from windlass.store.sqlite.prune import drop


def end(db: Db, job: Running, ending: Ending) -> Status:
    """Apply the ending: into history if it is final, else back among the waiting. The status it has now."""
    ending = resolve(job, ending, db.now)
    if ending.status in FINISHED:
        _finish(db, job, ending)
    else:
        _put_back(db, job, ending)
    if job.frees(ending.status):
        move_up(db, [(job.queue, job.concurrency_key or "")])
    return ending.status


def _put_back(db: Db, job: Running, ending: Ending) -> None:
    name = "put_back" if ending.status is Status.PENDING else "put_off"
    values = ending_values(job, ending, db.now)
    # Handed-back and rescued jobs keep their rank: they lose no place to those that came after them.
    values["run_at"] = values["now"] + ending.delay
    db.run(name, values)


def _finish(db: Db, job: Running, ending: Ending) -> None:
    values = ending_values(job, ending, db.now)
    values["result"] = ending.result
    values["keep"] = retention(db, job.queue, ending.status)
    db.run("finish", values)
    db.run("drop_live", values)
    db.tally(job.queue, ending.status, 1)
    if job.idempotency_key is not None:
        release(db, [Keyed(job.id, job.queue, job.idempotency_key, job.idempotency_window)])
    follow(db, {job.id: ending.status})
    if values["keep"] == 0:
        drop(db, [job.id])


def retention(db: Db, queue: str, status: Status) -> Micros:
    """How long a job of this queue is kept after it ended so."""
    rows = db.rows("retention", {"queue": queue})
    return retention_of(rows[0] if rows else None, status)
