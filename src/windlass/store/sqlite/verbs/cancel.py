"""Waiting jobs that end before they run: cancelled, replaced by a new job, or expired."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from windlass.core.flow.queue import DEFAULT_RETENTION
from windlass.core.ids import JobId
from windlass.core.jobs.admission import EXPIRED
from windlass.core.jobs.dependencies import parent_ended_reason
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.idempotency_keys import release
from windlass.store.sqlite.limits.key_queue import assign_free_key_slots
from windlass.store.sqlite.verbs.prune import drop_unkept
from windlass.store.sqlite.verbs.release import release_after_cancel

MAX_EXPIRED_BY_CLAIM = 100
"""A claim expires at most this many jobs. Claims expire jobs too, so that expiry needs no coordinator."""
MAX_EXPIRED_HEADS = 1000


def cancel_waiting(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Move waiting jobs into history, each with its reason, together with the jobs that wait for them.

    The caller has read in this transaction that they are waiting.
    """
    if not reasons:
        return
    descendants = db.rows("descendants", {"ids": array(reasons)})
    fallen = {
        child: parent_ended_reason(parent, Status.CANCELLED) for child, parent, ended in descendants if not ended
    }
    reasons = {**fallen, **reasons}
    values = {"batch": array(reasons.items()), "now": db.now, "keep": DEFAULT_RETENTION[Status.CANCELLED]}
    rows = db.rows("cancellable", values)
    jobs = [Keyed(*row[:4]) for row in rows]
    db.run("cancel", values)
    db.run("drop_live_batch", values)
    for queue, count in Counter(job.queue for job in jobs).items():
        db.add_history_count(queue, Status.CANCELLED, count)
    release(db, jobs)
    if any(when_ended for _, _, when_ended in descendants):
        release_after_cancel(db, list(reasons))
    drop_unkept(db, [job.id for job in jobs])
    assign_free_key_slots(db, {(queue, key) for _, queue, _, _, key in rows if key is not None})


def is_any_expired(db: Db) -> bool:
    """Whether `expire` would find anything: one seek in an index that is empty unless jobs expire; takes no lock."""
    return bool(db.rows("expired", {"now": db.now, "limit": 1}))


def expire(db: Db, limit: int) -> Sequence[JobId]:
    """Cancel waiting jobs past their `expires_at`, the longest expired first; returns their ids."""
    ids = [row[0] for row in db.rows("expired", {"now": db.now, "limit": limit})]
    cancel_waiting(db, dict.fromkeys(ids, EXPIRED))
    return ids


def expire_heads(db: Db, values: Mapping[str, Any]) -> bool:
    """Cancel the expired jobs among those that a claim would take; returns False if they are too many for one
    transaction."""
    wanted = {name: values[name] for name in ("queue", "types", "limit", "now")}
    expired = 0
    while ids := [row[0] for row in db.rows("expired_heads", wanted)]:
        cancel_waiting(db, dict.fromkeys(ids, EXPIRED))
        expired += len(ids)
        if expired >= MAX_EXPIRED_HEADS:
            return False
    return True
