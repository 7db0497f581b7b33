"""settle, note: record what runners report about attempts, fenced by (job, attempt)."""

from collections import defaultdict
from collections.abc import Sequence

from windlass.core.jobs.outcome import Ending, Settlement
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status
from windlass.store.ending import Running, ending_values, is_repeat, resolve
from windlass.store.keys import Keyed
from windlass.store.queues import retention_of
from windlass.store.records import Note, Settled
from windlass.store.rows import add_note
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.idempotency_keys import release
from windlass.store.sqlite.limits.key_queue import assign_free_key_slots
from windlass.store.sqlite.verbs.dependents import after_parents_ended
from windlass.store.sqlite.verbs.prune import drop


def settle(db: Db, settlements: Sequence[Settlement]) -> list[Settled]:
    """Settle plain completions as one batch per queue; if any of these cannot be, settle all one by one."""
    plain: dict[str, list[Settlement]] = defaultdict(list)
    for settlement in settlements:
        if settlement.status is Status.COMPLETED and not settlement.keyed:
            plain[settlement.queue].append(settlement)
    if plain and _complete(db, plain):
        return [
            Settled.SETTLED if s.status is Status.COMPLETED and not s.keyed else _settle_one(db, s)
            for s in settlements
        ]
    return [_settle_one(db, settlement) for settlement in settlements]


def _complete(db: Db, by_queue: dict[str, list[Settlement]]) -> bool:
    """Move all of these jobs into history; returns False, and moves none, if any is not running as it says."""
    db.savepoint("plain")
    for queue, settlements in by_queue.items():
        if not _complete_queue(db, queue, settlements):
            db.roll_back("plain")
            return False
    db.release("plain")
    return True


def _complete_queue(db: Db, queue: str, settlements: Sequence[Settlement]) -> bool:
    ids = {s.id for s in settlements}
    if len(ids) != len(settlements):
        return False
    values = {
        "batch": array((s.id, s.attempt, s.started_after, s.result) for s in settlements),
        "now": db.now,
        "keep": _retention(db, queue, Status.COMPLETED),
    }
    if db.run("complete", values) != len(settlements):
        return False
    db.run("drop_live_batch", values)
    db.add_history_count(queue, Status.COMPLETED, len(settlements))
    assign_free_key_slots(db, {(queue, s.concurrency_key) for s in settlements if s.concurrency_key is not None})
    after_parents_ended(db, dict.fromkeys(ids, Status.COMPLETED))
    if values["keep"] == 0:
        # The queue keeps no completed jobs: leave only their tombstones.
        drop(db, list(ids))
    return True


def _settle_one(db: Db, settlement: Settlement) -> Settled:
    rows = db.rows("running", {"id": settlement.id, "attempt": settlement.attempt})
    if not rows:
        return _already(db, settlement)
    apply_ending(db, Running(*rows[0]), settlement)
    return Settled.SETTLED


def _already(db: Db, settlement: Settlement) -> Settled:
    """Whether a settlement is a repeat, whose outcome is recorded already; any other is stale."""
    if any(is_repeat(settlement, *row) for row in db.rows("recorded", {"id": settlement.id})):
        return Settled.ALREADY
    values = {"id": settlement.id, "attempt": settlement.attempt, "outcome": settlement.outcome}
    if db.rows("has_tombstone", values):
        return Settled.ALREADY
    return Settled.STALE


def apply_ending(db: Db, job: Running, ending: Ending) -> Status:
    """Move a running job into history, or make it wait again; returns its new status."""
    ending = resolve(job, ending, db.now)
    if ending.status in FINISHED:
        _finish(db, job, ending)
    else:
        _put_back(db, job, ending)
    if job.frees(ending.status):
        assign_free_key_slots(db, [(job.queue, job.concurrency_key or "")])
    return ending.status


def _put_back(db: Db, job: Running, ending: Ending) -> None:
    # Requeued and rescued jobs keep their rank.
    name = "requeue" if ending.status is Status.PENDING else "reschedule"
    values = ending_values(job, ending, db.now)
    values["run_at"] = values["now"] + ending.delay
    db.run(name, values)


def _finish(db: Db, job: Running, ending: Ending) -> None:
    values = ending_values(job, ending, db.now)
    values["result"] = ending.result
    values["keep"] = _retention(db, job.queue, ending.status)
    db.run("finish", values)
    db.run("drop_live", values)
    db.add_history_count(job.queue, ending.status, 1)
    if job.idempotency_key is not None:
        release(db, [Keyed(job.id, job.queue, job.idempotency_key, job.idempotency_window)])
    after_parents_ended(db, {job.id: ending.status})
    if values["keep"] == 0:
        drop(db, [job.id])


def _retention(db: Db, queue: str, status: Status) -> Micros:
    rows = db.rows("retention", {"queue": queue})
    return retention_of(rows[0] if rows else None, status)


def note(db: Db, notes: Sequence[Note]) -> None:
    """Store the notes of running attempts; a late note changes nothing."""
    for each in notes:
        if each.started_after is not None:
            db.run("set_started", {"id": each.id, "attempt": each.attempt, "after": each.started_after})
        if (each.progress or each.lines) and db.rows("running", {"id": each.id, "attempt": each.attempt}):
            _keep(db, each)


def _keep(db: Db, each: Note) -> None:
    kept = db.rows("notes", {"job": each.id})
    progress, logs = kept[0] if kept else (None, None)
    progress, logs = add_note(progress, logs, each)
    db.run("set_notes", {"job": each.id, "progress": progress, "logs": logs})
