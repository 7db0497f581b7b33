"""The registry of workers."""

import msgspec

from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.store.records import WorkerInfo
from windlass.store.sqlite.db import Db

SILENT_AFTER: Micros = 60 * SECOND
"""A worker that did not vouch and says nothing for so long is not counted as alive."""

_info = msgspec.json.Decoder(WorkerInfo)


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
    return [_record(row, held.get(row[0], 0)) for row in db.rows("workers") if _alive(db, row)]


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


def _record(row: tuple[str, str, str, int, int, int], running: int) -> WorkerInfo:
    _, info, _, _, started_at, beat_at = row
    known = _info.decode(info)
    return msgspec.structs.replace(
        known, running=running, started_at=to_datetime(started_at), beat_at=to_datetime(beat_at)
    )
