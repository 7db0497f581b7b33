"""Admission of jobs that wait for a concurrency key.

A due job with a key waits until a key slot is free. A statement that makes a job wait, or frees a key slot, adds a
dirty key, but locks and counts nothing. Dirty keys are processed by one transaction per queue at a time: it locks the
queue's row and then, in a later statement, counts the key slots, because a snapshot from before the lock does not
show the key slots that the previous transaction assigned.

Processed dirty keys are dead rows, which stay while an old snapshot is held. But each has the id of its transaction:
a process that has seen all of them then reads only those of transactions that had not ended.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.trouble import state_of
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.limits.throttle import MAX_PAUSE
from windlass.store.records import Transition

MAX_DIRTY_KEYS = 500
"""Dirty keys processed by one statement."""
MAX_ADMITTED_PER_KEY = 100
"""Jobs of one key admitted by one statement."""
FULL_READ_EVERY: Micros = 60 * SECOND
"""How often all dirty keys are read, whatever was seen before."""
MIN_PAUSE: Micros = SECOND // 50
"""The pause between admissions by a process that has other jobs to run: batches cost less."""
SHARE = 50
"""Reading all dirty keys, and sweeps, take at most 1/50 of the time each."""
_UNIQUE_VIOLATION = "23505"
_TRIES = 3


class KeyQueues:
    """Which dirty keys one process has seen. Several processes may admit at the same time."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._rest = 0
        """The first transaction whose dirty keys in any other queue may not have been seen."""
        self._whole_at: Micros = 0
        self._admitted_at: Micros = 0
        self.dirty: set[str] = set()
        """Queues with dirty keys that were seen but not processed."""

    def due(self, *, idle: bool) -> bool:
        """Whether to admit now."""
        return bool(self.dirty) and (idle or since_boot() - self._admitted_at >= MIN_PAUSE)

    def since(self, queues: Iterable[str]) -> int:
        """The first transaction whose dirty keys in these queues may not have been seen."""
        return min((self._since.get(queue, self._rest) for queue in queues), default=0)

    def note(self, queues: Iterable[str], marked: Collection[str], behind: int) -> None:
        """Record a read of the dirty keys of `queues`: those not in `marked` have none of transactions before
        `behind`."""
        self.dirty.update(marked)
        for queue in queues:
            if queue not in marked:
                self._since[queue] = behind

    async def admit_dirty(self, access: Access) -> int:
        """Admit jobs in every queue; returns how many. Every FULL_READ_EVERY, reads all dirty keys."""
        began = since_boot()
        if whole := began >= self._whole_at:
            self._since, self._rest = {}, 0
        since = min([self._rest, *self._since.values()])
        ((marked, behind),) = await access.read(lambda db: db.rows("queues_with_dirty_keys", {"since": since}))
        self._since |= {queue: self._since.get(queue, self._rest) for queue in marked}
        self.note(list(self._since), marked, behind)
        self._rest = behind
        jobs = await self.admit(access)
        if whole:
            ended = since_boot()
            self._whole_at = ended + max(FULL_READ_EVERY, min(SHARE * (ended - began), 10 * FULL_READ_EVERY))
        return jobs

    async def admit(self, access: Access, wanted: int | None = None, beyond: Micros = 0) -> int:
        """Process dirty keys until `wanted` jobs are admitted, at ranks from `beyond` on; returns how many were.

        If none is wanted now, process one part of the dirty keys of each queue, until a job is admitted: most of many
        dirty keys may have no free slot.
        """
        jobs = 0
        marked, self.dirty = self.dirty, set()
        self._admitted_at = since_boot()
        for queue in sorted(marked):
            more = wanted is None or jobs < max(1, wanted)
            while more:
                admitted, more = await self._admit(access, queue, beyond)
                jobs += admitted
                more = more and (wanted is None or jobs < wanted)
        return jobs

    async def _admit(self, access: Access, queue: str, beyond: Micros) -> tuple[int, bool]:
        """Admit jobs of one queue, unless another process does; returns how many, and whether there may be more."""
        values = {
            "queue": queue,
            "since": self.since([queue]),
            "limit": MAX_DIRTY_KEYS,
            "max_admitted": MAX_ADMITTED_PER_KEY,
            "beyond": beyond,
        }

        async def work(db: Db) -> Sequence[Any] | None:
            if not await db.rows("lock_queue_of_keys", {"queue": queue}):
                return None
            answer: Sequence[Any] = (await db.rows("admit_waiting", values))[0]
            return answer

        answer = await _again(access, work)
        if answer is None:
            return 0, False
        dirty_keys, jobs, unfinished, still_dirty, behind = answer
        if dirty_keys < MAX_DIRTY_KEYS:
            self._since[queue] = behind
        # If all stay dirty, the next parts may be the same keys, as long as other transactions lock their jobs.
        return jobs, unfinished > 0 or dirty_keys == MAX_DIRTY_KEYS > still_dirty


async def _again(access: Access, work: Any) -> Any:
    """Run an admission, again if the unique index refused it: a statement without the lock has taken the key slot."""
    for _ in range(_TRIES - 1):
        try:
            return await access.write(work)
        except StoreUnavailable as error:
            if error.__cause__ is None or state_of(error.__cause__) != _UNIQUE_VIOLATION:
                raise
    return await access.write(work)


async def let_run(db: Db, rows: Iterable[Any]) -> dict[JobId, Transition]:
    """Lower the watermarks to these jobs, given as (id, status, queue, sort_priority, rank), if they are pending;
    returns their transitions."""
    rows = list(rows)
    await watermarks.lower(db, [tuple(row[2:]) for row in rows if row[1] == Status.PENDING])
    return {row[0]: Transition(row[0], Status(row[1]), done=True) for row in rows}


PAGE = 200
"""Keys that one sweep reads."""

_START = ("", "")


class KeySweeper:
    """Finds keys with free key slots that are not dirty; one sweeper, in the coordinator, is enough."""

    def __init__(self) -> None:
        self._last: tuple[str, str] = _START
        self._next_at: Micros = 0

    async def sweep_some(self, access: Access) -> int:
        """Sweep the next page; returns how many keys became dirty."""
        began = since_boot()
        if began < self._next_at:
            return 0
        queue, key = self._last
        values = {"queue": queue, "key": key, "limit": PAGE}
        rows = await access.once(lambda db: db.rows("mark_free_keys", values))
        keys, queue, key, marked = rows[0] if rows else (0, *_START, 0)
        self._last = (queue, key) if keys == PAGE else _START
        ended = since_boot()
        self._next_at = ended + min(SHARE * (ended - began), MAX_PAUSE)
        return int(marked)
