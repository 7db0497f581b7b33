"""Leases: one per runner, by the server's clock.

A lapsed lease is never renewed. An outage ends no runner: the statement that renews leases also writes when any lease
was last renewed, so that a silence is visible, whatever makes renewals fail.
"""

from collections.abc import Sequence

from windlass.core.grace import Silence, gets_grace
from windlass.core.moments import SECOND, Micros
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.records import CancelRequest, LeaseRequest, Renewal

FRESH: Micros = SECOND
"""The lease activity is not written more often than this, because each write leaves a dead row."""
_FRESH_PART = 8
"""Nor is it older than 1/8 of a lease, so that it does not look like half a lease of silence."""


async def open_lease(db: Db, request: LeaseRequest) -> None:
    """Open a lease for a new runner; repeating it is a no-op."""
    await db.run("open_lease", {"runner": request.runner, "worker": request.worker, "length": request.length})


async def renew(access: Access, runners: Sequence[str], length: Micros) -> Renewal:
    """Extend valid leases; lapsed ones are lost. A silence of all runners is forgiven first."""
    due, held = await _renew(access, runners, length, None)
    if due:
        # Leases that lapsed between the two statements are kept, because the server may have stalled in between.
        moment = await access.write(forgive_silence)
        _, held = await _renew(access, runners, length, moment)
    kept = tuple(runner for runner in runners if runner in held)
    return Renewal(kept, tuple(runner for runner in runners if runner not in held))


async def _renew(
    access: Access, runners: Sequence[str], length: Micros, moment: Micros | None
) -> tuple[bool, set[str]]:
    values = {
        "runners": list(runners),
        "length": length,
        "moment": moment,
        "fresh": min(FRESH, length // _FRESH_PART),
        "set_back": FRESH,
    }
    ((due, kept),) = await access.once(lambda db: db.rows("renew", values))
    return due, set(kept)


async def cancels(db: Db, worker: str) -> tuple[CancelRequest, ...]:
    """Running jobs under this worker's leases that were asked to stop."""
    return tuple(CancelRequest(*row) for row in await db.rows("cancels", {"worker": worker}))


async def forgive_silence(db: Db, length: Micros | None = None) -> Micros:
    """Give every lease a grace if all runners were silent; returns the moment up to which silences are forgiven.

    If no lease was renewed for half a lease, the server was unreachable: no runner need be dead. The first call
    afterwards extends every lease by one length from now. A forward jump of the server's clock looks the same. If the
    clock was set back, leases would last too long and dead runners would be found late: then each lease is shortened
    to one length from now, and leadership is free.

    Needs a transaction of its own, because concurrent calls wait for its end; without a silence nothing is locked or
    written. `length` is that of a lease that is about to be opened.

    The caller may rescue runners whose leases lapsed by the moment returned, but none that lapsed since: the server
    may have stalled between two statements, and that silence is not forgiven yet.
    """
    at, moment, shortest = (await db.rows("lease_activity", {"length": length}))[0]
    if at is None:
        await db.run("add_lease_activity")
    elif _is_long(moment - at, shortest):
        # Of two calls after an outage, the second waits here until the first has extended the leases.
        at, reached_at, graced_until, moment = (await db.rows("lock_lease_activity"))[0]
        if _is_long(moment - at, shortest):
            moment = await _forgive(db, at, reached_at, graced_until)
    return int(moment)


def _is_long(silence: Micros, shortest: Micros | None) -> bool:
    """Whether leases need a grace, or the clock was set back."""
    return silence <= -FRESH or (shortest is not None and silence > shortest // 2)


async def _forgive(db: Db, at: Micros, reached_at: Micros, graced_until: Micros) -> Micros:
    """Forgive the silence up to the moment returned, which is read once all leases are locked."""
    leases = await db.rows("lock_leases")
    moment = await db.now()
    if moment > at:
        silence = Silence(moment - at, moment - reached_at)
        lengths = {runner: length for runner, length, graces in leases if gets_grace(graces, length, silence)}
        await db.run("grace", {"runners": list(lengths), "moment": moment})
        graced_until = max([graced_until, *(moment + length for length in lengths.values())])
    else:
        await db.run("shorten", {"runners": [runner for runner, _, _ in leases], "moment": moment})
        await db.run("expire_leadership", {"moment": moment})
        graced_until = moment
    await db.run("set_lease_activity", {"moment": moment, "graced_until": graced_until})
    return moment
