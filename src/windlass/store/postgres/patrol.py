"""The patrol along all lines: a key that has a free slot, and somebody in line, is marked.

Every mark that was made is taken by somebody, so there should be none to find. But should one be lost, or were slots
changed by hand, a line would stand still for ever: so it is looked at, page by page.
"""

from windlass.core.moments import Micros
from windlass.store.clock import since_boot
from windlass.store.postgres.access import Access
from windlass.store.postgres.sparing import LONGEST

PAGE = 200
"""Keys in a page."""
SHARE = 50
"""Of so many parts of the time, the patrol may take one."""

_START = ("", "")


class Patrol:
    """Where one who looks along the lines has come to; one of these in the coordinator is enough."""

    def __init__(self) -> None:
        self._last: tuple[str, str] = _START
        self._next_at: Micros = 0

    async def go_on(self, access: Access) -> int:
        """Look at the next page: how many keys were marked."""
        began = since_boot()
        if began < self._next_at:
            return 0
        queue, key = self._last
        values = {"queue": queue, "key": key, "limit": PAGE}
        rows = await access.once(lambda db: db.rows("mark_free", values))
        keys, queue, key, marked = rows[0] if rows else (0, *_START, 0)
        self._last = (queue, key) if keys == PAGE else _START
        ended = since_boot()
        self._next_at = ended + min(SHARE * (ended - began), LONGEST)
        return int(marked)
