"""The SQLite store: a database and its roles."""

from windlass.store.clock import Clock, SystemClock
from windlass.store.sqlite import roles
from windlass.store.sqlite.connection.access import Access, DbThreads
from windlass.store.sqlite.connection.database import Database
from windlass.store.sqlite.db import load_statements
from windlass.store.sqlite.limits.limits import ClaimMemory


class SqliteStore:
    """One database: a file that several processes share, durable on power loss, or the memory of one process."""

    works_without_loop = True
    begins_without_loop = False

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock | None = None,
        deadline: float | None = None,
        threads: type[DbThreads] = DbThreads,
    ) -> None:
        """`deadline` bounds every call."""
        load_statements()
        self.address = database.address
        clock = clock or SystemClock()
        self._share(threads(database, clock), ClaimMemory(clock), deadline)

    def _share(self, threads: DbThreads, memory: ClaimMemory, deadline: float | None) -> None:
        access = Access(threads, deadline)
        self._threads, self._memory = threads, memory
        named = threads.named
        self.jobs = named(roles.SqliteJobs(access, memory))
        self.operator = named(roles.SqliteOperator(access))
        self.queues = named(roles.SqliteQueues(access))
        self.schedules = named(roles.SqliteSchedules(access))
        self.leases = named(roles.SqliteLeases(access))
        self.workers = named(roles.SqliteWorkers(access))
        self.leader = named(roles.SqliteLeader(access))
        self.signals = named(roles.SqliteSignals(access, memory))
        self.stats = named(roles.SqliteStats(access))
        self.documents = named(roles.SqliteDocuments(access))

    def with_timeout(self, seconds: float) -> "SqliteStore":
        """A view of the same database and threads with another deadline."""
        view = object.__new__(SqliteStore)
        view.address = self.address
        view._share(self._threads, self._memory, seconds)
        return view

    async def tidy(self) -> None:
        """Copy the log into the file when a checkpoint is due."""
        await self._threads.checkpoint()

    async def migrate(self) -> list[str]:
        """Open the file, which applies migrations; returns the names of the steps that this store applied."""
        await self._threads.write(lambda db: None, None)
        return list(self._threads.applied)

    async def check_schema(self) -> None:
        """Raise SchemaMismatch if a breaking migration was applied since this store was opened."""
        await self._threads.check_schema()

    async def close(self) -> None:
        """End every thread and connection."""
        await self._threads.close()
