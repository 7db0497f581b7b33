"""prune: drop finished jobs whose retention is over, a bounded number at a time."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.meter import KEPT, slot_of
from windlass.core.queue import TOMBSTONE
from windlass.core.rate import SET_BACK
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.samples import prune_samples


def prune(db: Db, limit: int) -> list[JobId]:
    """Drop what may be dropped, oldest first; old tombstones, meters, samples and windows of keys go too."""
    now = db.now
    ids = [row[0] for row in db.rows("prunable", {"now": now, "limit": limit})]
    drop(db, ids)
    db.run("prune_tombstones", {"now": now, "limit": limit})
    db.run("prune_meters", {"before": slot_of(now - KEPT)})
    prune_samples(db)
    db.run("prune_keys", {"now": now, "limit": limit})
    db.run("turn_back_aside", {"now": now, "little": SET_BACK})
    db.run("turn_back_gates", {"now": now, "little": SET_BACK})
    db.run("prune_gates", {"now": now, "limit": limit})
    return ids


def drop_unkept(db: Db, ids: Sequence[str]) -> None:
    """Of jobs that have just ended, drop those that their queues do not keep: all but the tombstone."""
    drop(db, [row[0] for row in db.rows("droppable", {"ids": array(ids), "now": db.now})])


def drop(db: Db, ids: Sequence[str]) -> None:
    """Remove finished jobs and all that is kept of them. Their ids are remembered until a day after they ended."""
    if not ids:
        return
    values = {"ids": array(ids), "now": db.now, "tombstone": TOMBSTONE}
    # Twice as many go as come: where nothing is kept there is one for every job, too many to wait for a coordinator.
    db.run("prune_tombstones", {"now": db.now, "limit": 2 * len(ids)})
    db.run("bury", values)
    for queue, status, jobs, waits in db.rows("count_dropped", values):
        db.tally(queue, status, -jobs)
        if waits:
            db.run("drop_waits", values)
    db.run("drop_notes", values)
    db.run("drop_history", values)
