"""work: whether a claim or an admission would find anything. A look without a lock."""

from collections.abc import Sequence

from windlass.core.rate import ready_at
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.recall import Recall
from windlass.store.sqlite.terms import Terms, terms_of
from windlass.store.sqlite.tolls import tokens


def has_work(db: Db, queues: Sequence[str], types: Sequence[str] | None, recall: Recall) -> bool:
    """Whether anything is due, or jobs wait in queues that are not paused, full or without tokens."""
    now = db.now
    ruling = terms_of(db, now)
    opened = [queue for queue in queues if queue not in ruling or not _is_shut(db, queue, ruling[queue], recall)]
    values = {"queues": array(opened), "types": None if types is None else array(types), "now": now}
    return bool(db.rows("work", values)[0][0])


def _is_shut(db: Db, queue: str, terms: Terms, recall: Recall) -> bool:
    if terms.paused or recall.is_shut(queue, terms):
        return True
    if terms.max_concurrency is not None:
        ((running,),) = db.rows("count_running", {"queue": queue})
        if running >= terms.max_concurrency:
            return True
    if terms.rate is not None and not (bucket := tokens(db, queue, terms.rate)).tokens:
        recall.shut(queue, ready_at(bucket, terms.rate, 1), terms)
        return True
    return False
