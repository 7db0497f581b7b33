"""The SQLite store: a site and its roles."""

from windlass.store.clock import Clock, SystemClock
from windlass.store.sqlite.access import Access, Lanes
from windlass.store.sqlite.recall import Recall
from windlass.store.sqlite.roles import SqliteJobs, SqliteOperator, SqliteQueues, SqliteSchedules
from windlass.store.sqlite.site import Site
from windlass.store.sqlite.upkeep import (
    SqliteLeader,
    SqliteLeases,
    SqliteSignals,
    SqliteStats,
    SqliteWorkers,
)


class SqliteStore:
    """One database: a file that several processes share, durable on power loss, or the memory of one process."""

    loopless = True

    def __init__(self, site: Site, *, clock: Clock | None = None, deadline: float | None = None) -> None:
        """`deadline` bounds every call."""
        self.address = site.address
        clock = clock or SystemClock()
        self._share(Lanes(site, clock), Recall(clock), deadline)

    def _share(self, lanes: Lanes, recall: Recall, deadline: float | None) -> None:
        access = Access(lanes, deadline)
        self._lanes, self._recall = lanes, recall
        self.jobs = SqliteJobs(access, recall)
        self.operator = SqliteOperator(access)
        self.queues = SqliteQueues(access)
        self.schedules = SqliteSchedules(access)
        self.leases = SqliteLeases(access)
        self.workers = SqliteWorkers(access)
        self.leader = SqliteLeader(access)
        self.signals = SqliteSignals(access, recall)
        self.stats = SqliteStats(access)

    def bounded(self, seconds: float) -> "SqliteStore":
        """Another view of the same file and the same lanes."""
        view = object.__new__(SqliteStore)
        view.address = self.address
        view._share(self._lanes, self._recall, seconds)
        return view

    async def tidy(self) -> None:
        """A file needs nothing of the kind."""

    async def migrate(self) -> list[str]:
        """Opening is migrating: the names of what this store applied."""
        await self._lanes.write(lambda db: None, None)
        return list(self._lanes.applied)

    async def close(self) -> None:
        """End every thread and connection."""
        await self._lanes.close()
