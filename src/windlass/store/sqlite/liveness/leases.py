"""Leases, one per runner, and the rescue of the jobs under lapsed ones. A stalled runner never counts as dead."""

from collections.abc import Callable, Sequence
from typing import Any

from windlass.core.grace import MIN_OUTAGE, Silence, gets_grace
from windlass.core.jobs.outcome import LOST, Ending
from windlass.core.moments import Micros
from windlass.store.ending import Running, ending_of
from windlass.store.records import CancelRequest, LeaseRequest, Renewal, Rescued, RunnerEnd
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.verbs.settle import apply_ending


def has_lease(db: Db, runner: str) -> bool:
    """Whether the runner has a lease, lapsed or not."""
    return bool(db.rows("lease", {"runner": runner}))


def holds_lease(db: Db, runner: str) -> bool:
    """Whether the runner's lease exists and has not lapsed."""
    rows = db.rows("lease", {"runner": runner})
    return bool(rows) and not lapsed(db, rows[0])


def lapsed(db: Db, lease: Any) -> bool:
    """Whether a lease has lapsed.

    A runner with a liveness lock is alive while the lock is held, and dead once it is free. Without a lock, lease
    expiry alone counts. There are two exceptions: a live runner without a supervisor keeps its lease only until it
    expires; and a dead runner is left to its live supervisor, which knows what was running, until the lease expires.

    Another boot id means that the machine was restarted, or that the runner is in a container with a boot id of its
    own. A held lock proves that its process runs on this kernel, and so has the same boot clock.
    """
    runner, worker, boot, expires_at = lease
    alive = db.liveness_locks.alive(runner)
    # Not `is False`: the lock file of a dead supervisor may have been deleted.
    orphaned = db.liveness_locks.alive(worker) is not True
    if boot != db.clock.boot and not alive and orphaned:
        return True
    late: bool = expires_at <= db.clock.since_boot()
    if alive is None:
        return late
    return late and orphaned if alive else late or orphaned


def open_(db: Db, request: LeaseRequest) -> None:
    """Open a lease for a new runner; repeating it is a no-op."""
    forgive_silence(db, request.length)
    values = {
        "runner": request.runner,
        "worker": request.worker,
        "boot": db.clock.boot,
        "expires_at": db.clock.since_boot() + request.length,
        "length": request.length,
    }
    db.run("open_lease", values)


def renew(db: Db, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
    """Extend the leases that have not lapsed; a lapsed one is never renewed."""
    forgive_silence(db)
    kept = tuple(runner for runner in runners if holds_lease(db, runner))
    values = {"runners": array(kept), "expires_at": db.clock.since_boot() + length, "length": length}
    db.run("renew", values)
    if kept:
        db.run("set_lease_activity", {"now": db.clock.since_boot(), "boot": db.clock.boot})
    return Renewal(kept, tuple(runner for runner in runners if runner not in kept))


def cancels(db: Db, worker: str) -> tuple[CancelRequest, ...]:
    """Running jobs under this worker's leases that were asked to stop."""
    return tuple(CancelRequest(*row) for row in db.rows("cancels", {"worker": worker}))


def forgive_silence(db: Db, length: Micros | None = None) -> None:
    """Give every lease a grace if all runners were silent.

    If no lease was renewed for half a lease, the store was unreachable or the machine was asleep: no runner need be
    dead. The first call afterwards extends every lease by one length from now. `length` is that of a lease that is
    about to be opened, which must not begin within a silence. Boot ids do not matter here: containers may have their
    own, and a lease from before a restart is void in any case.
    """
    now = db.clock.since_boot()
    # A renewal in the future: no lease was ever renewed, or the machine was restarted.
    renewed_at, reached_at, graced_until = next(iter(db.rows("lease_activity")), (now + 1, now, now))
    ((shortest,),) = db.rows("shortest_lease", {"length": length})
    if renewed_at <= now and (shortest is None or now - renewed_at <= shortest // 2):
        return
    if renewed_at < now:
        graced_until = max(graced_until, _extend(db, Silence(now - renewed_at, now - reached_at)))
    else:
        graced_until = now
    db.run("forgive_silence", {"now": now, "boot": db.clock.boot, "graced_until": graced_until})


def _extend(db: Db, silence: Silence) -> Micros:
    """Extend each lease that gets a grace by its length, from now; returns when the longest grace ends."""
    now = db.clock.since_boot()
    leases = db.rows("lease_lengths")
    lengths = {runner: length for runner, length, graces in leases if gets_grace(graces, length, silence)}
    db.run("extend_leases", {"now": now, "runners": array(list(lengths))})
    return now + max(lengths.values(), default=0)


def is_any_lapsed(db: Db) -> bool:
    """Whether any lease has lapsed."""
    return any(lapsed(db, lease) for lease in db.rows("leases"))


def is_in_grace(db: Db) -> bool:
    """Whether any lease may be in its grace."""
    return any(db.clock.since_boot() <= graced_until for _, _, graced_until in db.rows("lease_activity"))


def record_check(db: Db) -> None:
    """Record a check for lapsed leases; first forgive a silence, which this check would hide."""
    now = db.clock.since_boot()
    graced = is_in_grace(db)
    unreached = any(now - reached_at > MIN_OUTAGE for _, reached_at, _ in db.rows("lease_activity"))
    if is_any_lapsed(db) or (graced and unreached):
        forgive_silence(db)
    if graced:
        db.run("set_checked", {"now": now})


def needs_rescue(db: Db) -> bool:
    """Whether `rescue` has anything to do or to record; takes no lock."""
    return is_any_lapsed(db) or is_in_grace(db) or bool(db.rows("runners_without_lease", {"limit": 1}))


def rescue(db: Db, limit: int) -> list[Rescued]:
    """Drop lapsed leases, then put their jobs back; up to `limit` runners at a time."""
    record_check(db)
    gone = [lease[0] for lease in db.rows("leases") if lapsed(db, lease)][:limit]
    for runner in gone:
        db.run("drop_lease", {"runner": runner})
    # Jobs without a lease: a rescue was interrupted, or the file was restored from a back-up.
    orphaned = [row[0] for row in db.rows("runners_without_lease", {"limit": limit})]
    rescued = [job for runner in dict.fromkeys(gone + orphaned) for job in _put_back(db, runner, lambda _: LOST)]
    for runner in gone:
        db.liveness_locks.clear(runner)
    return rescued


def end(db: Db, ended: RunnerEnd) -> list[Rescued]:
    """Put back the jobs of a runner that its supervisor saw end; `ended` names the jobs that had started."""
    db.run("drop_lease", {"runner": ended.runner})
    rescued = _put_back(db, ended.runner, lambda job: ending_of(job, ended))
    db.liveness_locks.clear(ended.runner)
    return rescued


def _put_back(db: Db, runner: str, how: Callable[[Running], Ending]) -> list[Rescued]:
    rescued = []
    for row in db.rows("running_of", {"runner": runner}):
        job = Running(*row)
        ending = how(job)
        status = apply_ending(db, job, ending)
        rescued.append(Rescued(job.id, job.type, job.queue, job.attempt, status, ending.outcome, runner))
    return rescued
