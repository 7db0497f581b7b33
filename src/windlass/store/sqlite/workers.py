"""The registry of workers."""

from functools import partial

import msgspec

from windlass.store.records import WorkerInfo
from windlass.store.sqlite.db import Db
from windlass.store.workers import SILENT_AFTER, to_worker


def beat(db: Db, worker: WorkerInfo) -> None:
    """Register or refresh."""
    values = {
        "id": worker.id,
        "info": msgspec.json.encode(worker).decode(),
        "boot": db.clock.boot,
        "beat": db.clock.since_boot(),
        "now": db.now,
    }
    db.run("beat", values)


def forget(db: Db, worker: str) -> None:
    """Sign off."""
    db.run("forget", {"id": worker})


def live_workers(db: Db) -> list[WorkerInfo]:
    """Those that are alive, as far as can be seen from here, with the number of jobs that they hold now."""
    held: dict[str, int] = dict(db.rows("busy"))
    return [
        to_worker(info, started_at, beat_at, held.get(worker, 0))
        for worker, info, _, _, started_at, beat_at in filter(partial(_alive, db), db.rows("workers"))
    ]


def forget_dead(db: Db) -> None:
    """Clear away those that ended without signing off."""
    for row in db.rows("workers"):
        if not _alive(db, row):
            forget(db, row[0])
            db.vouchers.clear(row[0])


def _alive(db: Db, row: tuple[str, str, str, int, int, int]) -> bool:
    worker, _, boot, beat_at, _, _ = row
    vouched = db.vouchers.alive(worker)
    if boot != db.clock.boot or vouched is False:
        return False
    return vouched is True or db.clock.since_boot() - beat_at < SILENT_AFTER
