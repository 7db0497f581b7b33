"""Lines: who is next for a concurrency key.

A job with a key that is due stands in line until a slot of its key is free. Whoever brings one there, or frees a
slot, leaves a mark in the same statement, and locks and counts nothing. Marks are taken by one at a time for each
queue: the queue's row is locked, and only a later statement counts the slots, because a snapshot that is older than
the lock does not show what the one before has given away.

Marks that were taken are dead, and as long as anybody holds an old snapshot they cannot be cleaned away. But a mark
has the number of its transaction. Whoever has taken all that he saw needs to look only at marks of transactions that
were not over then.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.postgres import floors
from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db
from windlass.store.postgres.trouble import state_of
from windlass.store.records import Moved

MOST_MARKS = 500
"""Taken by one statement."""
MOST_OF_KEY = 100
"""Let in by one statement for each key."""
WHOLE_EVERY: Micros = 60 * SECOND
NO_HURRY: Micros = SECOND // 50
"""Who has enough to do lets others in so often, and no more often: many at once cost less."""
SHARE = 50
"""Of so many parts of the time, looks at all marks there are may take one."""
_THERE_ALREADY = "23505"
_TRIES = 3


class Lines:
    """What one process has seen of the marks. Any number of them may let jobs in at the same time."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._rest = 0
        """The same for queues that are not among them."""
        self._whole_at: Micros = 0
        self._admitted_at: Micros = 0
        self.marked: set[str] = set()
        """Queues in which marks were seen, and not taken yet."""

    def due(self, *, hungry: bool) -> bool:
        """Whether somebody is to be let in now."""
        return bool(self.marked) and (hungry or since_boot() - self._admitted_at >= NO_HURRY)

    def since(self, queues: Iterable[str]) -> int:
        """The first transaction of which marks in one of these queues may not have been seen."""
        return min((self._since.get(queue, self._rest) for queue in queues), default=0)

    def note(self, queues: Iterable[str], marked: Collection[str], behind: int) -> None:
        """A look has found marks in these queues only: the others have none of transactions before `behind`."""
        self.marked.update(marked)
        for queue in queues:
            if queue not in marked:
                self._since[queue] = behind

    async def look(self, access: Access) -> int:
        """Let in whoever may go in, in every queue: how many. Now and then as if nothing had been seen before."""
        began = since_boot()
        if whole := began >= self._whole_at:
            self._since, self._rest = {}, 0
        since = min([self._rest, *self._since.values()])
        ((marked, behind),) = await access.read(lambda db: db.rows("marked", {"since": since}))
        self._since |= {queue: self._since.get(queue, self._rest) for queue in marked}
        self.note(list(self._since), marked, behind)
        self._rest = behind
        jobs = await self.admit(access)
        if whole:
            ended = since_boot()
            self._whole_at = ended + max(WHOLE_EVERY, min(SHARE * (ended - began), 10 * WHOLE_EVERY))
        return jobs

    async def admit(self, access: Access, wanted: int | None = None, beyond: Micros = 0) -> int:
        """Take the marks that were seen, up to so many jobs: how many were let in, at ranks not below `beyond`."""
        jobs = 0
        marked, self.marked = self.marked, set()
        self._admitted_at = since_boot()
        for queue in sorted(marked):
            more = True
            while more and (wanted is None or jobs < wanted):
                admitted, more = await self._admit(access, queue, beyond)
                jobs += admitted
        return jobs

    async def _admit(self, access: Access, queue: str, beyond: Micros) -> tuple[int, bool]:
        """How many jobs were let in, and whether there may be more: none by who comes while another does it."""
        values = {
            "queue": queue,
            "since": self.since([queue]),
            "limit": MOST_MARKS,
            "most": MOST_OF_KEY,
            "beyond": beyond,
        }

        async def work(db: Db) -> Sequence[Any] | None:
            if not await db.rows("lock_line", {"queue": queue}):
                return None
            answer: Sequence[Any] = (await db.rows("admit_line", values))[0]
            return answer

        answer = await _again(access, work)
        if answer is None:
            return 0, False
        marks, jobs, unfinished, behind = answer
        if marks < MOST_MARKS:
            self._since[queue] = behind
        return jobs, marks == MOST_MARKS or unfinished > 0


async def _again(access: Access, work: Any) -> Any:
    """Somebody who locks nothing may have given a slot: the index has refused a second one, and a new look helps."""
    for _ in range(_TRIES - 1):
        try:
            return await access.write(work)
        except StoreUnavailable as error:
            if error.__cause__ is None or state_of(error.__cause__) != _THERE_ALREADY:
                raise
    return await access.write(work)


async def let_run(db: Db, rows: Iterable[Any]) -> dict[JobId, Moved]:
    """Jobs may run as far as time goes, (id, status, queue, urgency, rank): what that means for each of them."""
    rows = list(rows)
    await floors.lower(db, [tuple(row[2:]) for row in rows if row[1] == Status.PENDING])
    return {row[0]: Moved(row[0], Status(row[1]), done=True) for row in rows}
