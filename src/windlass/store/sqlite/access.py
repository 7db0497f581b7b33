"""The ways into the database file: a lane for writes, a lane for reads, and who may wait how long."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.store.clock import Clock
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.guest import NoTables, stay
from windlass.store.sqlite.hosts import Host, visit
from windlass.store.sqlite.joint import Joint
from windlass.store.sqlite.lane import Lane, ReadLane
from windlass.store.sqlite.mend import NotText, mend
from windlass.store.sqlite.migrate import is_current, migrate
from windlass.store.sqlite.signals import Watch
from windlass.store.sqlite.site import Site
from windlass.store.sqlite.writer import WriteLane

T = TypeVar("T")
X = TypeVar("X")


class Lanes:
    """The two ways in, shared by all roles: writes grouped in one lane, reads in another."""

    def __init__(self, site: Site, clock: Clock) -> None:
        self._site = site
        self._clock = clock
        self.vouchers = site.vouchers
        self._writer = WriteLane(site.path, self._open_writer, site.turn)
        self._reader = ReadLane(site.path, site.reader) if site.snapshots else self._writer
        self.watch = Watch(site.reader, site.touched)
        self.applied: list[str] = []
        self._migrated = False
        self._closed = False

    async def write(self, work: Callable[[Db], T], deadline: float | None) -> T:
        """Do the work in the next group commit."""
        if self._site.failpoints is not None:
            work = self._site.failpoints.named(work)
        return await self._run(self._writer, work, deadline)

    async def write_jointly(
        self, verb: Callable[[Db, Sequence[X]], list[T]], items: Sequence[X], deadline: float | None
    ) -> list[T]:
        """Do the work in the next group commit, in one go with the like work of others who wait."""
        if self._site.failpoints is not None:
            # Those name and count verbs one by one.
            return await self.write(_alone(verb, items), deadline)
        return await self._writer.run(Joint(verb, items, self._db), deadline)

    async def read(self, work: Callable[[Db], T], deadline: float | None) -> T:
        """Do the work in a snapshot."""
        if not self._migrated:
            await self.write(lambda db: None, deadline)
        return await self._run(self._reader, work, deadline)

    async def inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Do the work in the caller's own transaction."""
        self._site.check_guests()

        def enter(host: Host) -> T:
            return stay(host, self._site.path, lambda guest: work(Db(guest, self._clock, self.vouchers)))

        try:
            return await visit(connection, enter)
        except NoTables:
            await self.write(lambda db: None, None)
            return await visit(connection, enter)

    async def close(self) -> None:
        """End both threads and every proof of life; closing twice is closing once."""
        if self._closed:
            return
        self._closed = True
        self.watch.close()
        await self._writer.close()
        await self._reader.close()
        self._site.leave()

    async def _run(self, lane: Lane, work: Callable[[Db], T], deadline: float | None) -> T:
        try:
            return await lane.run(lambda connection: work(self._db(connection)), deadline)
        except (UnicodeDecodeError, NotText):
            await self._writer.run(lambda connection: mend(self._db(connection)), deadline)
            return await lane.run(lambda connection: work(self._db(connection)), deadline)

    def _db(self, connection: Connection) -> Db:
        return Db(connection, self._clock, self.vouchers)

    def _open_writer(self) -> Connection:
        """The first connection of a process also brings the schema up to date; the turn is held here."""
        connection = self._site.writer()
        if not is_current(connection):
            self.applied += migrate(connection)
        self._migrated = True
        return connection


class Access:
    """The lanes, as one user of the store sees them: with a deadline of its own."""

    def __init__(self, lanes: Lanes, deadline: float | None) -> None:
        self.lanes = lanes
        self._deadline = deadline

    async def write(self, work: Callable[[Db], T]) -> T:
        """Do the work durably."""
        return await self.lanes.write(work, self._deadline)

    async def write_jointly(self, verb: Callable[[Db, Sequence[X]], list[T]], items: Sequence[X]) -> list[T]:
        """Do the work durably, in one go with the like work of others who wait."""
        return await self.lanes.write_jointly(verb, items, self._deadline)

    async def inside(self, connection: object, work: Callable[[Db], T]) -> T:
        """Do the work in the caller's own transaction, whose patience is the caller's too."""
        return await self.lanes.inside(connection, work)

    async def read(self, work: Callable[[Db], T]) -> T:
        """Do the work in a snapshot."""
        return await self.lanes.read(work, self._deadline)


def _alone(verb: Callable[[Db, Sequence[X]], list[T]], items: Sequence[X]) -> Callable[[Db], list[T]]:
    def work(db: Db) -> list[T]:
        return verb(db, items)

    work.__qualname__ = verb.__qualname__
    return work
