"""repair: restore indexes after a script that was refused a command in its middle.

A script is atomic unless the server stops it at a command that its user may no longer run. Rights are checked when
a store is opened and every few seconds (rights.py), so that is rare; but a job that is in no index would wait for
ever. Counters that disagree with indexes reveal it, and then every record of that queue is checked, some at a time.
"""

import time
from collections.abc import Sequence

from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access

INTERVAL = 60.0
"""Seconds between looks at the counters."""
INDEXES = (
    *("ids", "ready", "tenant_queues", "due", "throttled", "waiting_for_key", "parked", "drop_times", "by_status"),
    *("failures", "slots", "expiring", "held"),
)
MAX_PAGES = 200
"""Of one queue in one turn: some 10,000 jobs. The next turn goes on from there."""


class Repairs:
    """What one process has seen to, and where it goes on."""

    def __init__(self) -> None:
        self._due = 0.0
        self._walks: dict[str, tuple[int, str]] = {}
        """Queues that are under repair: which of the walks, and its cursor."""

    async def go_on(self, access: Access, queues: Sequence[str]) -> None:
        """Look for queues that need it, now and then, and go on with those that do."""
        if time.monotonic() >= self._due or access.server.script_stopped:
            await self._look(access, queues)
        for queue in [queue for queue in self._walks if queue in queues]:
            await self._walk(access, queue)

    async def _look(self, access: Access, queues: Sequence[str]) -> None:
        """After a script has stopped, all of them."""
        suspect, access.server.script_stopped = access.server.script_stopped, False
        replies = await access.call_each("check_counts", dict.fromkeys(queues, ((),)))
        for queue, wrong in replies.items():
            if not isinstance(wrong, StoreUnavailable) and (wrong or suspect):
                self._walks.setdefault(queue, (-1, "0"))
        self._due = time.monotonic() + INTERVAL

    async def _walk(self, access: Access, queue: str) -> None:
        """First every job, then every index, and at last the counters."""
        for _ in range(MAX_PAGES):
            number, cursor = self._walks[queue]
            if number == len(INDEXES):
                await access.call("recount", queue, ())
                del self._walks[queue]
                return
            if number < 0:
                onward = (await access.call("repair_jobs", queue, cursor))[0].decode()
                self._walks[queue] = (0, "0") if onward == "0" else (number, onward)
            else:
                rank = (await access.call("repair_index", queue, (INDEXES[number], int(cursor))))[0]
                self._walks[queue] = (number + 1, "0") if rank < 0 else (number, str(rank))
