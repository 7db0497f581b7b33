"""The server, as this process uses it: its hosts, a pool per event loop, and the checks of the first session."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import msgspec

from windlass.errors import StoreUnavailable
from windlass.store.clock import Clock
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.conflicts import Conflicts
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Texts
from windlass.store.postgres.connection.failpoints import armed_commits
from windlass.store.postgres.connection.pool import Pool
from windlass.store.postgres.connection.requirements import check_server, learn_notify
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import TROUBLE
from windlass.store.postgres.migrate import Obstacle, buckets_of, is_current, migrate

CONNECT_SECONDS = 10.0
HOST_SECONDS = 2.0
"""Per host if there are several, so that one that does not answer hardly delays the next."""


class Identity(msgspec.Struct, frozen=True):
    """Identifies one database and its tables; `store_id` is None if the transaction does not see it yet."""

    name: str
    number: int
    store_id: str | None


class ConnectionRole(msgspec.Struct, frozen=True):
    """What a process is called in `application_name`, and how many connections it may open."""

    name: str
    connections: int


class Server:
    """One schema of a database; each event loop has a pool of connections to it."""

    def __init__(self, address: Address, shown: str, clock: Clock | None, part: "ConnectionRole") -> None:
        self.address = address
        self.shown = shown
        self.texts = Texts(address.schema, clock, address.profile)
        self.notifies = address.notify
        """Whether hints are sent and received; in a profile, only after a test that the server accepts them."""
        self.conflicts = Conflicts()
        self.applied: list[str] = []
        self.obstacle = Obstacle()
        """What blocks a migration by this process."""
        self.closed = False
        self.failpoints = armed_commits()
        self._part = part
        self._most = address.connections or part.connections
        self._hosts = address.hosts
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()
        self._pooled: bool | None = None
        self.identity: Identity | None = None
        """Set by the first session."""
        self.verified_connections: WeakSet[Any] = WeakSet()
        """Callers' connections that are known to be on this database."""
        self.on_open: Callable[[Session], Awaitable[None]] | None = None
        """Called with every new session."""
        self.on_loop_end: Callable[[], Awaitable[None]] = _no_op
        """Called when an event loop ends."""

    @property
    def pooled(self) -> bool:
        """Whether the server is known to be behind a pooler."""
        return bool(self._pooled)

    def pool(self) -> Pool:
        """The pool of this event loop."""
        if self.closed:
            raise StoreUnavailable(f"{self.shown}: this store is closed", lasting=True)
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None and pool.pid != os.getpid():
            pool.abandon()
            pool = None
        if pool is None or pool.closed:
            self._abandon_closed()
            pool = self._pools[loop] = Pool(self._connect, self._prepare, self._most, self.on_loop_end)
        return pool

    def _abandon_closed(self) -> None:
        """Abandon the pools of closed event loops."""
        # Copy the references in one step, because other threads may add loops of theirs.
        for loop in [each for each in (ref() for ref in self._pools.keyrefs()) if each and each.is_closed()]:
            pool = self._pools.pop(loop, None)
            if pool is not None:
                pool.abandon()

    async def open_apart(self) -> Session:
        """A session outside of the pool, to listen on; the caller closes it."""
        if self.closed:
            raise StoreUnavailable(f"{self.shown}: this store is closed", lasting=True)
        session = await self._connect()
        try:
            await self._prepare(session)
        except BaseException:
            await session.close()
            raise
        return session

    async def _prepare(self, session: Session) -> None:
        """Prepare a new session; the first one of a process also applies migrations."""
        self._pooled = session.pooled
        if self.identity is None:
            await check_server(session, self.address, self.shown)
            self.notifies = await learn_notify(session, self.address, self.texts)
            if not await is_current(session, self.texts):
                frame = Session.transaction if self.failpoints is None else self.failpoints.migration
                self.applied += await migrate(session, self.texts, frame, self.obstacle, self.address.buckets)
            self.texts.buckets = await buckets_of(session, self.texts)
            self.identity = await identify(Db(session, self.texts))
            self.obstacle.text = ""
        if self.on_open is not None:
            await self.on_open(session)

    async def _connect(self) -> Session:
        """Open a session on the first host that accepts a connection; the last one that did is tried first."""
        hosts = self._hosts
        problems: list[Exception] = []
        for host in hosts:
            try:
                seconds = CONNECT_SECONDS if len(hosts) == 1 else HOST_SECONDS
                session = await connect(
                    host, seconds, pooled=self._pooled, part=self._part.name, profile=self.address.profile
                )
            except TROUBLE as error:
                problems.append(error)
            else:
                self._hosts = sorted(hosts, key=lambda each: each != host)
                return session
        raise problems[0]

    async def close(self) -> None:
        """Close the connections of this loop; those of others are closed with their loops."""
        self.closed = True
        await self.hang_up()
        self._abandon_closed()

    async def hang_up(self) -> None:
        """Close the connections of this loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


async def identify(db: Db) -> Identity:
    """The database on which a connection of the store or a caller is open."""
    ((name, number, store_id),) = await db.rows("identity")
    return Identity(name, number, store_id)


async def _no_op() -> None:
    """No-op."""
