"""prune: drop finished jobs whose retention is over, a bounded number at a time."""

from collections.abc import Sequence

from windlass.core.flow.queue import TOMBSTONE_RETENTION
from windlass.core.flow.rate import SET_BACK
from windlass.core.ids import JobId
from windlass.core.stats.samples import SAMPLE_RETENTION
from windlass.store.documents import MAX_PRUNED_DOCUMENTS
from windlass.store.drive import drive
from windlass.store.sql.documents import PRUNE_DOCUMENTS
from windlass.store.sql.stats import prune_meters, prune_samples
from windlass.store.sqlite.db import Db, SharedDb, array


def prune(db: Db, limit: int) -> list[JobId]:
    """Drop finished jobs, the oldest first, and tombstones, meters, samples, keys, documents and token buckets that
    are no longer needed."""
    now = db.now
    ids = [row[0] for row in db.rows("prunable", {"now": now, "limit": limit})]
    drop(db, ids)
    db.run("prune_tombstones", {"now": now, "limit": limit})
    shared = SharedDb(db)
    drive(prune_meters(shared))
    for step in SAMPLE_RETENTION:
        drive(prune_samples(shared, step))
    db.run("prune_idempotency_keys", {"now": now, "limit": limit})
    db.run("rewind_throttled", {"now": now, "tolerance": SET_BACK})
    db.run("rewind_token_buckets", {"now": now, "tolerance": SET_BACK})
    db.run("prune_token_buckets", {"now": now, "limit": limit})
    db.run(PRUNE_DOCUMENTS, {"now": now, "limit": MAX_PRUNED_DOCUMENTS})
    return ids


def drop_unkept(db: Db, ids: Sequence[str]) -> None:
    """Drop those of these finished jobs that their queues do not keep."""
    drop(db, [row[0] for row in db.rows("droppable", {"ids": array(ids), "now": db.now})])


def drop(db: Db, ids: Sequence[str]) -> None:
    """Remove finished jobs; their tombstones stay until a day after they finished."""
    if not ids:
        return
    values = {"ids": array(ids), "now": db.now, "tombstone": TOMBSTONE_RETENTION}
    # Twice as many as are added below: where no job is kept, the coordinator could not keep up.
    db.run("prune_tombstones", {"now": db.now, "limit": 2 * len(ids)})
    db.run("add_tombstones", values)
    for queue, status, jobs, pending_parents in db.rows("count_dropped", values):
        db.add_history_count(queue, status, -jobs)
        if pending_parents:
            db.run("drop_own_dependencies", values)
    db.run("drop_notes", values)
    db.run("drop_history", values)
