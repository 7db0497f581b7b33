"""Access to the database: a thread for writes, a thread for reads, and verbs bound to them."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from windlass.store.clock import Clock, since_boot
from windlass.store.drive import drive
from windlass.store.sql.session import Session, SharedRole
from windlass.store.sqlite.connection.base import Connection, Statements
from windlass.store.sqlite.connection.caller_transaction import (
    CallerConnection,
    MissingTables,
    in_transaction_of,
    with_caller_connection,
)
from windlass.store.sqlite.connection.checkpoints import CheckpointPace
from windlass.store.sqlite.connection.commit_watcher import CommitWatcher
from windlass.store.sqlite.connection.database import Database
from windlass.store.sqlite.connection.db_thread import DbThread, ReadThread
from windlass.store.sqlite.connection.write_thread import Combinable, WriteThread, checkpoint
from windlass.store.sqlite.db import Db, SharedDb, UnreadableText, repair_text
from windlass.store.sqlite.migrate import check_schema, is_current, migrate

P = ParamSpec("P")
T = TypeVar("T")
X = TypeVar("X")


class DbThreads:
    """The two threads of a database, shared by all roles and views of a store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.liveness_locks = database.liveness_locks
        self._writer = WriteThread(database.path, self._open_writer, database.turn)
        self._reader = ReadThread(database.path, database.reader) if database.snapshots else self._writer
        self.commits = CommitWatcher(database.reader, database.touched)
        self.applied: list[str] = []
        self._migrated = False
        self._closed = False
        self._checkpoints = CheckpointPace()

    def named(self, role: T) -> T:
        """The role; if failpoints are armed, its verbs first set the name by which failpoints refer to them."""
        return role if self._database.failpoints is None else self._database.failpoints.named(role)

    async def write(self, work: Callable[[Db], T], deadline: float | None) -> T:
        """Run the work in the next group commit."""
        if self._database.failpoints is not None:
            work = self._database.failpoints.noted(work)
        return await self._run(self._writer, work, deadline)

    async def write_combined(
        self, verb: Callable[[Db, Sequence[X]], list[T]], items: Sequence[X], deadline: float | None
    ) -> list[T]:
        """Run the verb in the next group commit; waiting calls of the same verb run as one call."""
        if self._database.failpoints is not None:
            # Failpoints count verbs one by one.
            return await self.write(lambda db: verb(db, items), deadline)
        return await self._writer.run(Combinable(verb, items, self._db), deadline)

    async def read(self, work: Callable[[Db], T], deadline: float | None) -> T:
        """Run the work in a snapshot."""
        if not self._migrated:
            await self._migrate(deadline)
        return await self._run(self._reader, work, deadline)

    async def checkpoint(self) -> None:
        """Copy the log into the file before it reaches MAX_LOG_PAGES, at which a commit would do it."""
        if self._checkpoints.is_due(since_boot()):
            pages = await self._writer.run(checkpoint)
            self._checkpoints.note(pages, since_boot())

    async def check_schema(self) -> None:
        """Raise SchemaMismatch after a breaking migration since the file was opened."""
        if not self._migrated:
            await self._migrate(None)
        await self._reader.run(check_schema)

    async def inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Run the work in the caller's own transaction."""
        return await self._inside(connection, work)

    async def read_inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Run work that only reads in the caller's transaction; if none was open, none is open afterwards."""
        return await self._inside(connection, work, reads=True)

    async def _inside(self, connection: object, work: Callable[[Db], T], *, reads: bool = False) -> T:
        self._database.check_caller_transactions()

        def enter(caller: CallerConnection) -> T:
            return in_transaction_of(
                caller, self._database.path, lambda statements: work(self._db(statements)), reads=reads
            )

        try:
            return await with_caller_connection(connection, enter)
        except MissingTables:
            await self._migrate(None)
            return await with_caller_connection(connection, enter)

    async def close(self) -> None:
        """End both threads and release all locks; repeating it is a no-op."""
        if self._closed:
            return
        self._closed = True
        self.commits.close()
        await self._writer.close()
        await self._reader.close()
        self._database.close()

    async def _migrate(self, deadline: float | None) -> None:
        """Open the write connection, which applies migrations, before the caller's verb runs."""
        await self._run(self._writer, lambda db: None, deadline)

    async def _run(self, thread: DbThread, work: Callable[[Db], T], deadline: float | None) -> T:
        try:
            return await thread.run(lambda connection: work(self._db(connection)), deadline)
        except (UnicodeDecodeError, UnreadableText):
            await self._writer.run(lambda connection: repair_text(self._db(connection)), deadline)
            return await thread.run(lambda connection: work(self._db(connection)), deadline)

    def _db(self, connection: Statements) -> Db:
        return Db(connection, self._clock, self.liveness_locks)

    def _open_writer(self) -> Connection:
        """Open a write connection; the first one of a process applies migrations. The caller holds the write turn."""
        connection = self._database.writer()
        if not is_current(connection):
            self.applied += migrate(connection)
        self._migrated = True
        return connection


class Access:
    """The threads, with the deadline of one view of the store."""

    def __init__(self, threads: DbThreads, deadline: float | None) -> None:
        self.threads = threads
        self._deadline = deadline

    async def write(self, work: Callable[[Db], T]) -> T:
        """Run the work durably."""
        return await self.threads.write(work, self._deadline)

    async def write_combined(self, verb: Callable[[Db, Sequence[X]], list[T]], items: Sequence[X]) -> list[T]:
        """Run the verb durably; waiting calls of the same verb run as one call."""
        return await self.threads.write_combined(verb, items, self._deadline)

    async def read(self, work: Callable[[Db], T]) -> T:
        """Run the work in a snapshot."""
        return await self.threads.read(work, self._deadline)


class SharedAccess:
    """Access for the verbs of `store/sql`, whose coroutines run on the threads and never suspend."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def write(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        return await self._access.write(lambda db: drive(work(SharedDb(db))))

    async def read(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        return await self._access.read(lambda db: drive(work(SharedDb(db))))


class Role(SharedRole):
    """A part of the store contract; its verbs are functions of a Db, or the shared ones of `store/sql`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._sessions = SharedAccess(access)

    def _announce(self) -> None:
        """No-op: every process watches the file."""


def write_verb(verb: Callable[Concatenate[Db, P], T]) -> Callable[Concatenate[Role, P], Coroutine[Any, Any, T]]:
    """A method that runs the verb in the next group commit."""

    async def bound(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._access.write(lambda db: verb(db, *args, **kwargs))

    return bound


def read_verb(verb: Callable[Concatenate[Db, P], T]) -> Callable[Concatenate[Role, P], Coroutine[Any, Any, T]]:
    """A method that runs the verb in a snapshot."""

    async def bound(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await role._access.read(lambda db: verb(db, *args, **kwargs))

    return bound
