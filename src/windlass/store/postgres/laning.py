"""Laning: jobs that were pending when their queue became fair are put into the lanes of their tenants.

So are those of callers who had not seen it when they handed in, and committed later. Nothing tells of them, so one
goes round and round through what is pending, a portion at a time.
"""

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.postgres.access import Access
from windlass.store.postgres.cursors import NOWHERE
from windlass.store.postgres.sparing import Sparing

PORTION = 1000
MOST = 10
"""Portions at a time, as long as there is something to do in each."""


class Laning:
    """The rounds of one process."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[Micros, JobId]] = {}
        self._sparing = Sparing()

    async def go_on(self, access: Access) -> int:
        """In every fair queue, a little: how many jobs were put into lanes."""
        if not self._sparing.may():
            return 0
        moved, left = 0, MOST
        for queue, urgency, floor in await access.read(lambda db: db.rows("fair_places")):
            while left:
                left -= 1
                some, ended = await self._portion(access, (queue, urgency), floor)
                moved += some
                if ended or not some:
                    break
        self._sparing.done()
        return moved

    async def _portion(self, access: Access, place: tuple[str, int], floor: Micros) -> tuple[int, bool]:
        rank, id_ = max(self._seen.get(place, (floor, NOWHERE)), (floor, NOWHERE))
        values = {"queue": place[0], "urgency": place[1], "rank": rank, "id": id_, "limit": PORTION}
        moved, last_rank, last_id = (await access.once(lambda db: db.rows("put_in_lanes", values)))[0]
        if last_rank is None:
            self._seen.pop(place, None)
        else:
            self._seen[place] = (last_rank, last_id)
        return moved, last_rank is None
