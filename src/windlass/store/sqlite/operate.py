"""cancel, retry, delete: what people do with jobs. A move that the job's status does not allow changes nothing."""

from collections.abc import Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.status import RETRYABLE, Status
from windlass.store.attempts import add_attempt, last_attempt
from windlass.store.records import Moved
from windlass.store.rows import FINISHED_COLUMNS
from windlass.store.sqlite.cancel import call_off
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.heirs import bring_back, wait_again
from windlass.store.sqlite.keys import take
from windlass.store.sqlite.line import settle_in
from windlass.store.sqlite.prune import drop


def cancel(db: Db, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
    """Waiting jobs end now, all at once: none of them moves up in a line first. Running ones are asked to stop."""
    waiting: dict[JobId, str] = {}
    answers = [_cancel(db, id_, reason, waiting) for id_ in ids]
    call_off(db, waiting)
    return answers


def _cancel(db: Db, id_: JobId, reason: str, waiting: dict[JobId, str]) -> Moved | None:
    """What becomes of it; one that waits goes among the others that are to be called off."""
    job = _find(db, id_)
    if job is None:
        return None
    if job["finished"] or id_ in waiting:
        return Moved(id_, Status.CANCELLED if id_ in waiting else job["status"], done=False)
    if job["status"] is Status.RUNNING:
        db.run("request_cancel", {"id": id_, "reason": reason, "now": db.now})
        return Moved(id_, Status.RUNNING, done=True)
    waiting[id_] = reason
    return Moved(id_, Status.CANCELLED, done=True)


def retry(db: Db, ids: Sequence[JobId]) -> list[Moved | None]:
    """Pending or in line at once, with a fresh budget; the attempt number goes on, the key is taken again.

    Who was called off because of one of them waits for it again; one that waits for a parent itself goes on waiting.
    """
    return [_retry(db, id_) for id_ in ids]


def _retry(db: Db, id_: JobId) -> Moved | None:
    job = _find(db, id_)
    if job is None:
        return None
    if job["status"] not in RETRYABLE:
        return Moved(id_, job["status"], done=False)
    now = db.now
    if not job["finished"]:
        db.run("retry_failed", {"id": id_, "now": now})
        return Moved(id_, settle_in(db, id_, Status.PENDING, job["lines"]), done=True)
    if job["waits"] and (vain := db.rows("vain_parents", {"id": id_})):
        return Moved(id_, job["status"], done=False, parent=vain[0][0])
    if job["key"] is not None and (holder := take(db, job["queue"], job["key"], id_)):
        return Moved(id_, job["status"], done=False, holder=holder)
    if job["waits"]:
        wait_again(db, {id_: job["queue"]})
        bring_back(db, id_)
        return Moved(id_, Status.BLOCKED, done=True)
    db.run("revive", {"id": id_, "now": now, "attempts": _all_attempts(db, id_)})
    db.run("drop_history", {"ids": array([id_])})
    db.tally(job["queue"], job["status"], -1)
    bring_back(db, id_)
    return Moved(id_, settle_in(db, id_, Status.PENDING, job["lines"]), done=True)


def delete(db: Db, ids: Sequence[JobId]) -> list[Moved | None]:
    """Finished jobs only: a live one must be cancelled first."""
    return [_delete(db, id_) for id_ in ids]


def _delete(db: Db, id_: JobId) -> Moved | None:
    job = _find(db, id_)
    if job is None:
        return None
    if job["finished"]:
        drop(db, [id_])
    return Moved(id_, job["status"], done=job["finished"])


def _find(db: Db, id_: JobId) -> dict[str, Any] | None:
    rows = db.rows("find", {"id": id_})
    if not rows:
        return None
    status, queue, key, finished, line, waits = rows[0]
    lines = [] if line is None else [(queue, line)]
    found = {"status": Status(status), "queue": queue, "key": key, "lines": lines, "waits": waits}
    return {**found, "finished": bool(finished)}


def _all_attempts(db: Db, id_: JobId) -> str | None:
    """The ended attempts, including the last one if only the columns tell of it: they will be overwritten."""
    rows = db.select(f"SELECT {FINISHED_COLUMNS} FROM windlass_history WHERE id = :id", {"id": id_})
    fields: dict[str, Any] = dict(zip(FINISHED_COLUMNS.split(", "), rows[0], strict=True))
    newest = last_attempt(fields)
    kept: str | None = fields["attempts"]
    return add_attempt(kept, newest) if newest else kept
