"""Leases: one per runner, by the server's clock. Lapsed ones are never renewed, and an outage is no one's death."""

from collections.abc import Sequence

from windlass.core.moments import SECOND, Micros
from windlass.store.postgres.db import Db
from windlass.store.records import CancelRequest, LeaseRequest, Renewal

FRESH: Micros = SECOND
"""A pulse younger than this is not written again: each time leaves a dead row behind."""
_FRESH_PART = 8
"""Of a lease. A pulse that is a little old already must not make half a lease of a silence that was none."""

_SHORT_PART = 4
"""Of a lease: a silence that is no reason to forgive it anything, by far."""


async def open_lease(db: Db, request: LeaseRequest) -> None:
    """A lease for a new runner; asking twice for the same one is the same as asking once."""
    await db.run("open_lease", {"runner": request.runner, "worker": request.worker, "length": request.length})


async def renew(db: Db, worker: str, runners: Sequence[str], length: Micros, moment: Micros) -> Renewal:
    """Extend the leases that held at the moment up to which the pulse was felt; the others are gone for good."""
    rows = await db.rows("renew", {"runners": list(runners), "length": length, "moment": moment})
    held = {row[0] for row in rows}
    kept = tuple(runner for runner in runners if runner in held)
    return Renewal(kept, tuple(runner for runner in runners if runner not in held), await cancels(db, worker))


async def cancels(db: Db, worker: str) -> tuple[CancelRequest, ...]:
    """Running jobs under this worker's leases that somebody wants stopped."""
    return tuple(CancelRequest(*row) for row in await db.rows("cancels", {"worker": worker}))


async def feel_pulse(db: Db, length: Micros = 0) -> Micros:
    """Notice a general silence, and give every lease a grace for it: the moment up to which that is done.

    If nobody renewed for half a lease, the server was out of reach: that is no one's death. Whoever comes first
    afterwards grants everybody one more lease, counted from now. A forward jump of the server's clock looks the same,
    and is forgiven in the same way. If the clock was set back, leases from before would last for so much longer, and
    the dead would be missed late: each is given one length from now, which is more than its runner counts on, and the
    office is free to be taken. Needs a transaction, and one of its own: others wait for the row until its end.

    Who asks for the sake of leases of one `length` waits for nobody as long as those need no grace: else all who
    renew would stand in line for one row, each until the one before has committed.

    What lapsed by the moment returned may be taken for dead, but nothing that lapsed since: between two statements
    of ours the server may have stood still, and that would be a silence that nobody has noticed yet.
    """
    at, moment = (await db.rows("pulse"))[0]
    if at is None:
        await db.run("make_pulse")
    elif not _is_fresh(moment - at, fresh := _fresh(length)):
        # Two come at the same time after an outage: the second waits here until the first has granted, and every
        # statement after this one sees it.
        short = 0 < moment - at <= length // _SHORT_PART
        locked = await db.rows("try_lock_pulse" if short else "lock_pulse")
        if not locked:
            return int(moment)  # somebody is at it
        at, moment = locked[0]
        silence = moment - at
        if not _is_fresh(silence, fresh):
            if silence > 0:
                await db.run("grace", {"silence": silence, "moment": moment})
            else:
                await db.run("shorten", {"moment": moment})
                await db.run("reopen_office", {"moment": moment})
            await db.run("set_pulse", {"moment": moment})
    return int(moment)


def _is_fresh(silence: Micros, fresh: Micros) -> bool:
    """Also when somebody was here while we waited for the row; but not if the clock was set back."""
    return -FRESH < silence <= fresh


def _fresh(length: Micros) -> Micros:
    return min(FRESH, length // _FRESH_PART)
