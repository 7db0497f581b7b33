"""rescue: what a gone runner held is put back. The lease goes first, the jobs after it.

The leases go in a transaction of their own, so that no claim that begins afterwards finds them. The jobs follow in
portions. If the rescuer dies in between, or a claim that had seen the lease is committed later, jobs run under no
lease: such orphans are looked for too, by whoever comes next.
"""

from collections.abc import Callable, Sequence

from windlass.core.moments import SECOND, Micros
from windlass.core.outcome import LOST, Fate
from windlass.store.ending import Running, fate_of, fated
from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db
from windlass.store.postgres.ending import end
from windlass.store.postgres.leases import feel_pulse
from windlass.store.postgres.shares import forget, forget_orphans
from windlass.store.records import Rescued, RunnerEnd

PORTION = 500
"""Jobs put back in one transaction."""
ORPHAN_AGE: Micros = 2 * SECOND
ORPHANS_EVERY: Micros = 5 * SECOND
"""They are rare, and the look for them goes through what every runner holds."""
EVER: Micros = 2**62


class Rescuer:
    """Looks for the gone, and puts back what they held. Any number of them may do so at the same time."""

    def __init__(self) -> None:
        self._orphans_at: Micros = 0

    async def rescue(self, access: Access, limit: int) -> list[Rescued]:
        """Of up to `limit` runners whose leases lapsed, and of as many that have none."""
        lapsed, now = (await access.read(lambda db: db.rows("lapsed")))[0]
        rescued = []
        if lapsed:
            moment = await access.write(feel_pulse)
            values = {"moment": moment, "limit": limit}
            gone = [row[0] for row in await access.once(lambda db: db.rows("drop_lapsed", values))]
            rescued += await _put_back(access, gone, EVER)
        # Not later than usual either, if the clock was set back.
        if not now < self._orphans_at <= now + ORPHANS_EVERY:
            self._orphans_at = now + ORPHANS_EVERY
            rescued += await _adopt(access, limit, now - ORPHAN_AGE)
            await forget_orphans(access)
        return rescued


async def end_runner(db: Db, ended: RunnerEnd) -> list[Rescued]:
    """The supervisor saw its runner end, and knows which jobs had started."""
    await db.run("drop_lease", {"runner": ended.runner})
    rows = await db.rows("lock_held", {"runner": ended.runner})
    rescued = await _end(db, [Running(*row) for row in rows], lambda job: fate_of(job, ended))
    await forget(db, [ended.runner])
    return rescued


async def _adopt(access: Access, limit: int, before: Micros) -> list[Rescued]:
    """Jobs whose lease is gone already. Only after a moment: who just dropped the lease is about to put them back."""
    values = {"before": before, "limit": limit}
    runners = [row[0] for row in await access.read(lambda db: db.rows("orphans", values))]
    return await _put_back(access, runners, before)


async def _put_back(access: Access, runners: Sequence[str], before: Micros) -> list[Rescued]:
    if not runners:
        return []
    values = {"runners": list(runners), "before": before, "limit": PORTION}

    async def portion(db: Db) -> list[Rescued]:
        rows = await db.rows("lock_left", values)
        return await _end(db, [Running(*row) for row in rows], lambda _: LOST)

    rescued: list[Rescued] = []
    while some := await access.write(portion):
        rescued += some
        if len(some) < PORTION:
            break
    await access.once(lambda db: forget(db, runners))
    return rescued


async def _end(db: Db, jobs: Sequence[Running], fate: Callable[[Running], Fate]) -> list[Rescued]:
    endings = [(job, fated(fate(job))) for job in jobs]
    statuses = await end(db, endings)
    return [
        Rescued(job.id, job.type, job.queue, job.attempt, status, ending.outcome, job.worker or "")
        for (job, ending), status in zip(endings, statuses, strict=True)
    ]
