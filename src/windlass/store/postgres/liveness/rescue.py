"""rescue: put back the jobs of dead runners, after their leases were deleted.

Leases are deleted in a transaction of their own, so that no later claim finds them; the jobs follow in portions. If
the rescuer dies in between, or a claim that has seen the lease commits later, jobs are left without a lease: such
orphans are rescued too.
"""

from collections.abc import Callable, Sequence

from windlass.core.grace import MIN_OUTAGE
from windlass.core.jobs.outcome import LOST, Ending
from windlass.core.moments import SECOND, Micros
from windlass.store.ending import Running, ending_of
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.queue_limits import drop_orphaned_quotas, drop_quotas
from windlass.store.postgres.liveness.leases import forgive_silence
from windlass.store.postgres.verbs.settle import end
from windlass.store.records import Rescued, RowsHeld, RunnerEnd

PORTION = 500
"""Jobs put back in one transaction."""
ORPHAN_AGE: Micros = 2 * SECOND
ORPHANS_EVERY: Micros = 5 * SECOND
"""How often orphans are searched: they are rare, and the search reads the jobs of every runner."""
CLAIMS_EVERY: Micros = 60 * SECOND
"""How often rows of `claims` without running jobs are deleted."""
EVER: Micros = 2**62
NO_LIMIT = 2**31 - 1


class Rescuer:
    """Finds dead runners and puts back their jobs. Several processes may do that at the same time."""

    def __init__(self) -> None:
        self._orphans_at: Micros = 0
        self._claims_at: Micros = 0

    async def rescue(self, access: Access, limit: int) -> list[Rescued]:
        """Rescue the jobs of up to `limit` runners with lapsed leases, and of as many without a lease."""
        lapsed, graced, unreached, now = (await access.read(lambda db: db.rows("lapsed")))[0]
        rescued, moment = [], now
        if lapsed or (graced and unreached > MIN_OUTAGE):
            moment = await access.write(forgive_silence)
        if graced:
            await access.once(lambda db: db.run("note_lease_check"))
        if lapsed:
            values = {"moment": moment, "limit": limit}
            gone = [row[0] for row in await access.once(lambda db: db.rows("drop_lapsed", values))]
            rescued += await _put_back(access, gone, EVER)
        # Spelled so that it is also true after the clock was set back.
        if not now < self._orphans_at <= now + ORPHANS_EVERY:
            self._orphans_at = now + ORPHANS_EVERY
            rescued += await _rescue_orphans(access, limit, now - ORPHAN_AGE)
            await drop_orphaned_quotas(access)
        if not now < self._claims_at <= now + CLAIMS_EVERY:
            self._claims_at = now + CLAIMS_EVERY
            await access.once(lambda db: db.run("drop_claims"))
        return rescued


async def end_runner(access: Access, ended: RunnerEnd) -> list[Rescued]:
    """Put back the jobs of a runner that its supervisor saw end; `ended` names the jobs that had started."""
    try:
        return await access.ending_waits().write(lambda db: _end_runner(db, ended, "lock_held"))
    except RowsHeld:
        # Skip locked jobs: they are rescued as orphans later.
        return await access.write(lambda db: _end_runner(db, ended, "lock_orphaned"))


async def _end_runner(db: Db, ended: RunnerEnd, statement: str) -> list[Rescued]:
    await db.run("drop_lease", {"runner": ended.runner})
    rows = await db.rows(
        statement, {"runner": ended.runner, "runners": [ended.runner], "before": EVER, "limit": NO_LIMIT}
    )
    rescued = await _end(db, [Running(*row) for row in rows], lambda job: ending_of(job, ended))
    await drop_quotas(db, [ended.runner])
    return rescued


async def _rescue_orphans(access: Access, limit: int, before: Micros) -> list[Rescued]:
    """Rescue jobs without a lease, claimed `before` a moment: a rescuer may be about to put newer ones back."""
    values = {"before": before, "limit": limit}
    runners = [row[0] for row in await access.read(lambda db: db.rows("orphans", values))]
    return await _put_back(access, runners, before)


async def _put_back(access: Access, runners: Sequence[str], before: Micros) -> list[Rescued]:
    if not runners:
        return []
    values = {"runners": list(runners), "before": before, "limit": PORTION}

    async def portion(db: Db) -> list[Rescued]:
        rows = await db.rows("lock_orphaned", values)
        return await _end(db, [Running(*row) for row in rows], lambda _: LOST)

    rescued: list[Rescued] = []
    while some := await access.write(portion):
        rescued += some
        if len(some) < PORTION:
            break
    await access.once(lambda db: drop_quotas(db, runners))
    return rescued


async def _end(db: Db, jobs: Sequence[Running], how: Callable[[Running], Ending]) -> list[Rescued]:
    endings = [(job, how(job)) for job in jobs]
    statuses = await end(db, endings)
    return [
        Rescued(job.id, job.type, job.queue, job.attempt, status, ending.outcome, job.worker or "")
        for (job, ending), status in zip(endings, statuses, strict=True)
    ]
