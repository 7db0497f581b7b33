"""The store in memory, and the transactions of callers on databases of their own."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from windlass.store.clock import Clock
from windlass.store.memory.batch import Batch, Fate
from windlass.store.memory.callers import caller_of
from windlass.store.sqlite.connection.access import DbThreads
from windlass.store.sqlite.connection.database import Database, MemoryDatabase
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.store import SqliteStore

T = TypeVar("T")
X = TypeVar("X")


class MemoryStore(SqliteStore):
    """An SQLite store in the memory of this process, for tests."""

    def __init__(self, *, clock: Clock | None = None, deadline: float | None = None) -> None:
        super().__init__(MemoryDatabase(), clock=clock, deadline=deadline, threads=MemoryThreads)

    @property
    def uncommitted(self) -> int:
        """How many enqueues wait for the commit of their caller."""
        assert isinstance(self._threads, MemoryThreads)
        return len(self._threads.batches)


class MemoryThreads(DbThreads):
    """Enqueues what callers have committed before every other call."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self.batches: list[Batch] = []
        """Enqueues in callers' transactions that are open, as far as is known."""

    async def inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Run the work when the caller commits; the answer, or the error, is that of a trial now."""
        await self._enqueue_committed()
        caller = await caller_of(connection)
        batch = Batch(work, caller.owner)
        before = [each for each in self.batches if each.owner is batch.owner and each.fate is Fate.OPEN]
        answer: T = await self._try([*before, batch])
        await caller.join(batch)
        self.batches.append(batch)
        return answer

    async def write(self, work: Callable[[Db], T], deadline: float | None) -> T:
        await self._enqueue_committed()
        return await super().write(work, deadline)

    async def write_combined(
        self, verb: Callable[[Db, Sequence[X]], list[T]], items: Sequence[X], deadline: float | None
    ) -> list[T]:
        await self._enqueue_committed()
        return await super().write_combined(verb, items, deadline)

    async def read(self, work: Callable[[Db], T], deadline: float | None) -> T:
        await self._enqueue_committed()
        return await super().read(work, deadline)

    async def _enqueue_committed(self) -> None:
        if not self.batches:
            return
        batches, self.batches = self.batches, []
        for batch in batches:
            if batch.fate is Fate.OPEN:
                batch.look()
        committed = [batch for batch in batches if batch.fate is Fate.COMMITTED]
        self.batches[:0] = [batch for batch in batches if batch.fate is Fate.OPEN]
        for batch in committed:
            await super().write(batch.work, None)

    async def _try(self, batches: Sequence[Batch]) -> Any:
        """The answer of the last batch, if all were committed now; nothing is stored."""

        def work(db: Db) -> NoReturn:
            raise _Undone([batch.work(db) for batch in batches][-1])

        try:
            return await super().write(work, None)
        except _Undone as undone:
            return undone.answer


class _Undone(Exception):
    """Rolls a trial back."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
