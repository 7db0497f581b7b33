"""Assigns tenant queues to the pending jobs of queues that became fair."""

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.limits.cursors import NOWHERE
from windlass.store.postgres.limits.throttle import Throttle

PORTION = 1000
"""Jobs scanned by one statement."""
MAX_BATCHES = 10
"""Portions in one call; a portion without such jobs ends the call for its priority."""


class TenantQueueAssigner:
    """Scans pending jobs; remembers where each scan ended."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[Micros, JobId]] = {}
        self._throttle = Throttle()

    async def assign_some(self, access: Access) -> int:
        """Scan some jobs of every fair queue; returns how many got a tenant queue."""
        if not self._throttle.may_run():
            return 0
        moved, left = 0, MAX_BATCHES
        for queue, sort_priority, watermark in await access.read(lambda db: db.rows("fair_levels")):
            while left:
                left -= 1
                some, ended = await self._portion(access, (queue, sort_priority), watermark)
                moved += some
                if ended or not some:
                    break
        self._throttle.done()
        return moved

    async def _portion(self, access: Access, level: tuple[str, int], watermark: Micros) -> tuple[int, bool]:
        rank, id_ = max(self._seen.get(level, (watermark, NOWHERE)), (watermark, NOWHERE))
        values = {"queue": level[0], "sort_priority": level[1], "rank": rank, "id": id_, "limit": PORTION}
        moved, last_rank, last_id = (await access.once(lambda db: db.rows("assign_tenant_queues", values)))[0]
        if last_rank is None:
            self._seen.pop(level, None)
        else:
            self._seen[level] = (last_rank, last_id)
        return moved, last_rank is None
