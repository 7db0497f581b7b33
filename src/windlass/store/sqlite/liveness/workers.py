"""The registry of workers, and the leadership of the coordinator."""

from collections.abc import Sequence
from functools import partial

import msgspec

from windlass.store.records import Campaign, WorkerInfo
from windlass.store.rows import SILENT_AFTER, to_worker
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.liveness.leases import forgive_silence


def beat(db: Db, workers: Sequence[WorkerInfo]) -> None:
    """Register workers, or refresh their entries."""
    for worker in workers:
        values = {
            "id": worker.id,
            "info": msgspec.json.encode(worker).decode(),
            "boot": db.clock.boot,
            "beat": db.clock.since_boot(),
            "now": db.now,
        }
        db.run("beat", values)


def unregister(db: Db, worker: str) -> None:
    """Remove a worker."""
    db.run("drop_worker", {"id": worker})


def live_workers(db: Db) -> list[WorkerInfo]:
    """The live workers, with the number of jobs that each holds now."""
    held: dict[str, int] = dict(db.rows("jobs_by_worker"))
    return [
        to_worker(info, started_at, beat_at, held.get(worker, 0))
        for worker, info, _, _, started_at, beat_at in filter(partial(_is_alive, db), db.rows("workers"))
    ]


def _remove_dead(db: Db) -> None:
    for row in db.rows("workers"):
        if not _is_alive(db, row):
            unregister(db, row[0])
            db.liveness_locks.clear(row[0])


def _is_alive(db: Db, row: tuple[str, str, str, int, int, int]) -> bool:
    worker, _, boot, beat_at, _, _ = row
    alive = db.liveness_locks.alive(worker)
    if alive is not None:
        return alive
    return boot == db.clock.boot and db.clock.since_boot() - beat_at < SILENT_AFTER


def is_led_by_other(db: Db, bid: Campaign) -> bool:
    """Whether `campaign` would fail; takes no lock."""
    return leader(db) not in (None, bid.candidate)


def campaign(db: Db, bid: Campaign) -> int | None:
    """Become or stay the leader if there is no other; returns the term, which grows with each change of leader.

    The leader also removes dead workers.
    """
    forgive_silence(db)
    current = leader(db)
    if current not in (None, bid.candidate):
        return None
    rows = db.rows("leadership")
    term: int = (rows[0][1] if rows else 0) + (current is None)
    expires_at = db.clock.since_boot() + bid.length
    db.run("set_leader", {"holder": bid.candidate, "term": term, "boot": db.clock.boot, "expires_at": expires_at})
    _remove_dead(db)
    return term


def leader(db: Db) -> str | None:
    """The current leader; None if its leadership expired, it is dead, or it led before the last boot."""
    for holder, _, boot, expires_at in db.rows("leadership"):
        if holder is None or expires_at <= db.clock.since_boot():
            continue
        alive = db.liveness_locks.alive(holder)
        # A held lock proves that the leader runs on this kernel, whatever boot id its container has.
        if alive or (alive is None and boot == db.clock.boot):
            return str(holder)
    return None


def resign(db: Db, candidate: str) -> None:
    """Give up the leadership, if this process has it."""
    db.run("resign", {"holder": candidate})
