"""rescue: what a gone runner held is put back. The lease goes first, the jobs after it."""

from collections.abc import Callable

from windlass.core.outcome import LOST, Fate
from windlass.store.ending import Running, fate_of, fated
from windlass.store.records import Rescued, RunnerEnd
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.ending import end
from windlass.store.sqlite.leases import feel_pulse, lapsed


def needs_rescue(db: Db) -> bool:
    """A look without a lock: whether any lease has lapsed, or jobs run under none."""
    return any(lapsed(db, lease) for lease in db.rows("leases")) or bool(db.rows("orphans", {"limit": 1}))


def rescue(db: Db, limit: int) -> list[Rescued]:
    """Lapsed leases and their jobs; up to `limit` runners at a time."""
    feel_pulse(db)
    gone = [lease[0] for lease in db.rows("leases") if lapsed(db, lease)][:limit]
    for runner in gone:
        db.run("drop_lease", {"runner": runner})
    # Jobs whose lease is gone already: a rescuer died half-way, or a file was restored from a back-up.
    orphaned = [row[0] for row in db.rows("orphans", {"limit": limit})]
    rescued = [job for runner in dict.fromkeys(gone + orphaned) for job in _put_back(db, runner, lambda _: LOST)]
    for runner in gone:
        db.vouchers.clear(runner)
    return rescued


def end_runner(db: Db, ended: RunnerEnd) -> list[Rescued]:
    """The supervisor saw its runner end, and knows which jobs had started."""
    db.run("drop_lease", {"runner": ended.runner})
    rescued = _put_back(db, ended.runner, lambda job: fate_of(job, ended))
    db.vouchers.clear(ended.runner)
    return rescued


def _put_back(db: Db, runner: str, fate: Callable[[Running], Fate]) -> list[Rescued]:
    rescued = []
    for row in db.rows("held_by", {"runner": runner}):
        job = Running(*row)
        ending = fated(fate(job))
        status = end(db, job, ending)
        rescued.append(Rescued(job.id, job.type, job.queue, job.attempt, status, ending.outcome, runner))
    return rescued
