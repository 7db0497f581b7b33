"""change and run_now: waiting jobs get another time, priority, payload or queue."""

from collections.abc import Sequence
from typing import Any

from windlass.core.change import JobChange, Timing, may_change, may_run_now, retimed
from windlass.core.ids import JobId
from windlass.core.slots import seated, slot_after
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.records import Moved
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.keys import release, take
from windlass.store.sqlite.line import settle_in
from windlass.store.sqlite.queues import make_if_new


def run_now(db: Db, ids: Sequence[JobId]) -> list[Moved | None]:
    """Pending or in line at once, behind those that wait already; one that is pending stays where it is."""
    return [_run_now(db, id_) for id_ in ids]


def _run_now(db: Db, id_: JobId) -> Moved | None:
    rows = db.rows("find", {"id": id_})
    if not rows:
        return None
    status, queue, _, _, key, _ = rows[0]
    if not may_run_now(Status(status)):
        return Moved(id_, Status(status), done=False)
    db.run("run_now", {"id": id_, "now": db.now})
    return Moved(id_, settle_in(db, id_, Status.PENDING, [(queue, key)] if key is not None else []), done=True)


def change(db: Db, ids: Sequence[JobId], wanted: JobChange) -> list[Moved | None]:
    """Each of them wholly or not at all; an idempotency key goes with its job into another queue."""
    return [_change(db, id_, wanted) for id_ in ids]


def _change(db: Db, id_: JobId, wanted: JobChange) -> Moved | None:
    rows = db.rows("changeable", {"id": id_})
    if not rows:
        return None
    status, reason, run_at, rank, queue, idempotency_key, key, slot = rows[0]
    before = Timing(Status(status), reason, run_at, rank)
    if not may_change(before.status):
        return Moved(id_, before.status, done=False)
    target = wanted.queue or queue
    if target != queue and (holder := _move(db, Keyed(id_, queue, idempotency_key, None), target)):
        return Moved(id_, before.status, done=False, holder=holder)
    after = retimed(before, wanted, db.now)
    slot = slot_after(slot, after, wanted, target != queue)
    after = seated(after, key, slot)
    db.run("change", {"id": id_, "queue": target, "slot": slot, **_values(after, wanted), "now": db.now})
    lines = {(queue, key), (target, key)} if key is not None else set()
    return Moved(id_, settle_in(db, id_, after.status, lines), done=True)


def _move(db: Db, job: Keyed, target: str) -> JobId | None:
    """Take the idempotency key along: who has it there already, if anybody has."""
    if job.key is not None and (holder := take(db, target, job.key, job.id)):
        return holder
    release(db, [job])
    make_if_new(db, target)
    return None


def _values(after: Timing, wanted: JobChange) -> dict[str, Any]:
    return {
        "status": str(after.status),
        "reason": after.reason,
        "run_at": after.run_at,
        "rank": after.rank,
        "urgency": None if wanted.priority is None else -wanted.priority,
        "payload": wanted.payload,
        "timed": wanted.is_timed,
    }
