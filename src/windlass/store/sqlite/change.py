"""change and run_now: waiting jobs get another time, priority, payload or queue."""

from collections.abc import Sequence

from windlass.core.change import JobChange, Timing, may_change, may_run_now, retimed
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.records import Moved
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.keys import release, take
from windlass.store.sqlite.queues import make_if_new


def run_now(db: Db, ids: Sequence[JobId]) -> list[Moved | None]:
    """Pending at once, behind those that wait already; one that is pending stays where it is."""
    return [_run_now(db, id_) for id_ in ids]


def _run_now(db: Db, id_: JobId) -> Moved | None:
    rows = db.rows("find", {"id": id_})
    if not rows:
        return None
    status = Status(rows[0][0])
    if not may_run_now(status):
        return Moved(id_, status, done=False)
    db.run("run_now", {"id": id_, "now": db.now})
    return Moved(id_, Status.PENDING, done=True)


def change(db: Db, ids: Sequence[JobId], wanted: JobChange) -> list[Moved | None]:
    """Each of them wholly or not at all; a key goes with its job into another queue."""
    return [_change(db, id_, wanted) for id_ in ids]


def _change(db: Db, id_: JobId, wanted: JobChange) -> Moved | None:
    rows = db.rows("changeable", {"id": id_})
    if not rows:
        return None
    status, reason, run_at, rank, queue, key = rows[0]
    before = Timing(Status(status), reason, run_at, rank)
    if not may_change(before.status):
        return Moved(id_, before.status, done=False)
    if wanted.queue is not None and wanted.queue != queue:
        if key is not None and (holder := take(db, wanted.queue, key, id_)):
            return Moved(id_, before.status, done=False, holder=holder)
        release(db, [Keyed(id_, queue, key, None)])
        make_if_new(db, wanted.queue)
    after = retimed(before, wanted, db.now)
    values = {
        "id": id_,
        "status": str(after.status),
        "reason": after.reason,
        "run_at": after.run_at,
        "rank": after.rank,
        "now": db.now,
        "urgency": None if wanted.priority is None else -wanted.priority,
        "payload": wanted.payload,
        "queue": wanted.queue or queue,
    }
    db.run("change", values)
    return Moved(id_, after.status, done=True)
