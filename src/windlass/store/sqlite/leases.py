"""Leases: one per runner. Lapsed ones are never renewed, and a stall is never taken for death."""

from collections.abc import Sequence
from typing import Any

from windlass.core.moments import Micros
from windlass.store.records import CancelRequest, LeaseRequest, Renewal
from windlass.store.sqlite.db import Db, array


def holds_lease(db: Db, runner: str) -> bool:
    """Whether the runner's lease exists and has not lapsed."""
    rows = db.rows("lease", {"runner": runner})
    return bool(rows) and not lapsed(db, rows[0])


def lapsed(db: Db, lease: Any) -> bool:
    """Whether a lease has ended.

    A runner that vouched is dead when its lock is free, and alive while it is held: except an orphan, whose
    supervisor is gone and which had until the end of its lease to finish. For the others only time tells.
    The dead are left to a living supervisor for as long as the lease lasts: it knows what they were running.
    """
    runner, worker, boot, expires_at = lease
    if boot != db.clock.boot:
        return True
    alive = db.vouchers.alive(runner)
    late: bool = expires_at <= db.clock.since_boot()
    if alive is None:
        return late
    # Not `is False`: of a supervisor that died and was cleared away since there is no trace.
    orphaned = db.vouchers.alive(worker) is not True
    return late and orphaned if alive else late or orphaned


def open_lease(db: Db, request: LeaseRequest) -> None:
    """A lease for a new runner; asking twice for the same one is the same as asking once."""
    feel_pulse(db)
    values = {
        "runner": request.runner,
        "worker": request.worker,
        "boot": db.clock.boot,
        "expires_at": db.clock.since_boot() + request.length,
        "length": request.length,
    }
    db.run("open_lease", values)


def renew(db: Db, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
    """Extend the leases that hold; the others are gone for good."""
    feel_pulse(db)
    kept = tuple(runner for runner in runners if holds_lease(db, runner))
    values = {"runners": array(kept), "expires_at": db.clock.since_boot() + length, "length": length}
    db.run("renew", values)
    return Renewal(kept, tuple(runner for runner in runners if runner not in kept), cancels(db, worker))


def cancels(db: Db, worker: str) -> tuple[CancelRequest, ...]:
    """Running jobs under this worker's leases that somebody wants stopped."""
    return tuple(CancelRequest(*row) for row in db.rows("cancels", {"worker": worker}))


def feel_pulse(db: Db) -> bool:
    """Notice a general silence, and give every lease a grace for it.

    If nobody renewed for half a lease, the store was out of reach or the machine asleep: that is no one's death.
    Whoever comes first afterwards grants everybody one more lease, counted from now.
    """
    now, boot = db.clock.since_boot(), db.clock.boot
    rows = db.rows("pulse")
    silence = now - rows[0][1] if rows and rows[0][0] == boot else 0
    granted = bool(db.run("grace", {"now": now, "boot": boot, "silence": silence})) if silence > 0 else False
    db.run("set_pulse", {"now": now, "boot": boot})
    return granted
