"""tidy: finish or clear away what dead processes left half done; repair indexes.

A script is atomic unless the server stops it at a command that its user may no longer run. Rights are checked when
a store is opened and every few seconds (inspection.py), so that is rare; but a job that is in no index would wait for
ever. Counters that disagree with indexes reveal it, and then every record of that queue is checked, some at a time.
"""

import time
from collections.abc import Mapping, Sequence

from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.dependencies.dependents import finish_notifications, finish_parent_checks
from windlass.store.redis.duties.queue_rotation import QueueRotation
from windlass.store.redis.operator.move import finish_moves
from windlass.store.redis.verbs.large_batch import drop_batch, store_batch

INTERVAL = 60.0
"""Seconds between checks of the counters."""
INDEXES = (
    *("ids", "ready", "tenant_queues", "due", "throttled", "waiting_for_key", "parked", "drop_times", "by_status"),
    *("failures", "key_slots", "expiring", "held"),
)
MAX_PAGES = 200
"""Per queue and call: some 10,000 jobs. The next call continues from there."""


class Repairs:
    """The queues that this process repairs, and the progress in each."""

    def __init__(self) -> None:
        self._due = 0.0
        self._in_progress: dict[str, tuple[int, str]] = {}
        """By queue under repair: the number of the index (-1: the jobs), and the cursor in it."""

    async def run(self, access: Access, queues: Sequence[str]) -> None:
        """Check once a minute which queues need repair, and continue their repairs."""
        if time.monotonic() >= self._due or access.server.script_stopped:
            await self._check_counters(access, queues)
        for queue in [queue for queue in self._in_progress if queue in queues]:
            await self._repair_queue(access, queue)

    async def _check_counters(self, access: Access, queues: Sequence[str]) -> None:
        """Check the counters; after a script stopped half-way, repair all queues."""
        suspect, access.server.script_stopped = access.server.script_stopped, False
        replies = await access.call_each("check_counts", dict.fromkeys(queues, ((),)))
        for queue, wrong in replies.items():
            if not isinstance(wrong, StoreUnavailable) and (wrong or suspect):
                self._in_progress.setdefault(queue, (-1, "0"))
        self._due = time.monotonic() + INTERVAL

    async def _repair_queue(self, access: Access, queue: str) -> None:
        """Repair every job, then every index, then the counters."""
        for _ in range(MAX_PAGES):
            number, cursor = self._in_progress[queue]
            if number == len(INDEXES):
                await access.call("recount", queue, ())
                del self._in_progress[queue]
                return
            if number < 0:
                onward = (await access.call("repair_jobs", queue, cursor))[0].decode()
                self._in_progress[queue] = (0, "0") if onward == "0" else (number, onward)
            else:
                rank = (await access.call("repair_index", queue, (INDEXES[number], int(cursor))))[0]
                self._in_progress[queue] = (number + 1, "0") if rank < 0 else (number, str(rank))


IDLE = 5 * SECOND
"""As in parts/enqueue/staged_batch.lua: a committed batch without progress for this long is taken over."""
ABANDONED = 600 * SECOND
"""An uncommitted batch of this age is abandoned, and dropped."""


async def tidy(access: Access, repairs: Repairs, rounds: QueueRotation) -> None:
    """Finish abandoned batches, moves, notifications of dependents, and stopped scripts.

    Unreachable queues do not delay the others; their error is raised at the end.
    """
    names = await access.queue_names()
    replies = await access.call_each("unfinished_work", dict.fromkeys(await rounds.take(access, "tidy"), ((),)))
    away = {queue: reply for queue, reply in replies.items() if isinstance(reply, StoreUnavailable)}
    stale = {queue: reply[1:] for queue, reply in replies.items() if queue not in away}
    left = [queue for queue in stale if replies[queue][0]]
    troubles = QueueErrors(away.values())
    for finish in (
        lambda: finish_moves(access, left),
        lambda: _finish_batches(access, stale),
        lambda: finish_parent_checks(access, left),
        lambda: finish_notifications(access, left),
        lambda: repairs.run(access, [queue for queue in names if queue not in away]),
    ):
        with troubles.collected():
            await finish()
    troubles.raise_first()


async def _finish_batches(access: Access, stale: Mapping[str, Sequence[tuple[bytes, int]]]) -> None:
    troubles = QueueErrors()
    for queue, batches in stale.items():
        with troubles.collected():
            for batch, committed in batches:
                await (store_batch if committed else drop_batch)(access, queue, batch.decode())
    troubles.raise_first()
