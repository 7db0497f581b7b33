"""The store in memory, with enqueues in callers' transactions on their own databases."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from windlass.store.clock import Clock
from windlass.store.memory.batch import Batch, TransactionState, Work
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
        return sum(batch.state is TransactionState.OPEN for batch in self._threads.batches)


class MemoryThreads(DbThreads):
    """Database threads that, before every call, first enqueue what callers have committed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self.batches: list[Batch] = []
        """Enqueues in callers' transactions that are not stored yet."""

    async def inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Run the work after the caller commits; the answer, or the error, is that of a trial run now."""
        await self._enqueue_committed()
        caller = await caller_of(connection)
        batch = Batch(work, caller.owner)
        answer: T = await self._try([*self._open_work(batch.owner), work])
        await caller.join(batch)
        self.batches.append(batch)
        return answer

    async def read_inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Run the work as if the caller had committed; the caller's database is not touched."""
        await self._enqueue_committed()
        caller = await caller_of(connection)
        answer: T = await self._try([*self._open_work(caller.owner), work])
        return answer

    def _open_work(self, owner: object) -> list[Work]:
        return [each.work for each in self.batches if each.owner is owner and each.state is TransactionState.OPEN]

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
        """Store the batches of transactions that were committed. A batch stays listed until it is stored, because
        reading its state may fail, and this call may be cancelled."""
        for batch in list(self.batches):
            if batch.state is TransactionState.OPEN:
                batch.update()
            if batch.state is TransactionState.ROLLED_BACK:
                self._forget(batch)
        if any(batch.state is TransactionState.COMMITTED for batch in self.batches):
            errors = await super().write(self._store_committed, None)
            if errors:
                raise errors[0]

    def _store_committed(self, db: Db) -> list[Exception]:
        """Run the committed batches, each in its own savepoint; returns the errors of those that failed."""
        errors: list[Exception] = []
        for batch in [each for each in self.batches if each.state is TransactionState.COMMITTED]:
            db.savepoint("committed")
            try:
                batch.work(db)
            except Exception as error:
                db.roll_back("committed")
                errors.append(error)
            else:
                db.release("committed")
            self._forget(batch)
        return errors

    def _forget(self, batch: Batch) -> None:
        with suppress(ValueError):  # another thread has removed it
            self.batches.remove(batch)

    async def _try(self, works: Sequence[Work]) -> Any:
        """Run all work in a transaction that is rolled back; returns the answer of the last."""

        def work(db: Db) -> NoReturn:
            raise _RolledBack([each(db) for each in works][-1])

        try:
            return await super().write(work, None)
        except _RolledBack as trial:
            return trial.answer


class _RolledBack(Exception):
    """Ends a trial run with its answer, so that it is rolled back."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
