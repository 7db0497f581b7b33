"""The server and access to it: connections, deadlines, retries."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import asyncpg
import msgspec

from windlass.errors import StoreUnavailable, WindlassError
from windlass.store.clock import Clock
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.conflicts import Conflicts
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Texts
from windlass.store.postgres.connection.deadline import Call
from windlass.store.postgres.connection.failpoints import armed_commits
from windlass.store.postgres.connection.pool import Pool
from windlass.store.postgres.connection.repeated_reads import RepeatedReads
from windlass.store.postgres.connection.requirements import check_server, learn_notify
from windlass.store.postgres.connection.session import Frame, Session
from windlass.store.postgres.connection.trouble import (
    CANCELLED,
    READ_ONLY,
    TROUBLE,
    UNSENT,
    is_conflict,
    is_lost,
    state_of,
    translate,
)
from windlass.store.postgres.migrate import Obstacle, buckets_of, is_current, migrate

T = TypeVar("T")
Work = Callable[[Db], Awaitable[T]]

CONNECT_SECONDS = 10.0
HOST_SECONDS = 2.0
"""Per host if there are several: one that does not answer must not keep us from the others."""
MAX_CALL = 20.0
"""A call without a deadline ends too: a dead connection must not block a worker for ever."""
MAX_TRIES = 20
MANY = 10_000
"""A bulk call gets its deadline once more for each of these many jobs."""


class Identity(msgspec.Struct, frozen=True):
    """Identifies one database and its tables; `store_id` is None where it is not visible yet."""

    name: str
    number: int
    store_id: str | None


class ConnectionRole(msgspec.Struct, frozen=True):
    """The name and the maximum number of connections of a process."""

    name: str
    connections: int


class Server:
    """One database and its schema, as this process reaches it; connections belong to event loops."""

    def __init__(self, address: Address, shown: str, clock: Clock | None, part: "ConnectionRole") -> None:
        self.address = address
        self.shown = shown
        self.texts = Texts(address.schema, clock, address.profile)
        self.notifies = address.notify
        """Whether hints are sent and heard; where a profile has them off, only after they were tried."""
        self.conflicts = Conflicts()
        self.applied: list[str] = []
        self.obstacle = Obstacle()
        """What blocks a migration of this process."""
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
        """Callers' connections known to be on the same database."""
        self.on_open: Callable[[Session], Awaitable[None]] | None = None
        """Called with every new session."""
        self.on_loop_end: Callable[[], Awaitable[None]] = _no_op
        """Called when an event loop ends."""

    @property
    def pooled(self) -> bool:
        """Whether a pooler is identity to be in between."""
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
            self._let_go()
            pool = self._pools[loop] = Pool(self._reach, self._prepare, self._most, self.on_loop_end)
        return pool

    def _let_go(self) -> None:
        """Abandon the pools of closed event loops."""
        # Other threads may have loops too: the references are copied in one step.
        for loop in [each for each in (ref() for ref in self._pools.keyrefs()) if each and each.is_closed()]:
            pool = self._pools.pop(loop, None)
            if pool is not None:
                pool.abandon()

    async def open_apart(self) -> Session:
        """A session outside of the pool, to listen on; the caller closes it."""
        if self.closed:
            raise StoreUnavailable(f"{self.shown}: this store is closed", lasting=True)
        session = await self._reach()
        try:
            await self._prepare(session)
        except BaseException:
            session.give_up()
            raise
        return session

    async def _prepare(self, session: Session) -> None:
        """Prepare a new session; the first one migrates."""
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

    async def _reach(self) -> Session:
        """A session on the first host that accepts us, trying the last good one first."""
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
        self._let_go()

    async def hang_up(self) -> None:
        """Close the connections of this loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


async def identify(db: Db) -> Identity:
    """The database that a connection, ours or a caller's, is open on."""
    ((name, number, store_id),) = await db.rows("identity")
    return Identity(name, number, store_id)


async def _no_op() -> None:
    """No-op."""


class Access:
    """Runs work on the server, with a deadline and retries."""

    def __init__(self, server: Server, deadline: float | None, until: float | None = None) -> None:
        self.server = server
        self.seconds = deadline or MAX_CALL
        """How long a call may take."""
        self._until = until

    def for_many(self, jobs: int) -> "Access":
        """The same, with a longer deadline for a bulk of jobs."""
        return Access(self.server, self.seconds * (1 + jobs // MANY))

    def until(self, moment: float | None) -> "Access":
        """The same for calls that end at a moment of the loop's clock: part of the time was spent on waiting."""
        return self if moment is None else Access(self.server, self.seconds, moment)

    async def read(self, work: Work[T]) -> T:
        """Read. Each statement sees what was committed before it began."""
        return await self._run(work, _plainly, RepeatedReads)

    async def once(self, work: Work[T]) -> T:
        """Run a single statement: it is its own transaction, in one round trip."""
        return await self._run(work, self._watched(_plainly))

    async def write(self, work: Work[T]) -> T:
        """Run in a transaction."""
        return await self._run(work, self._watched(Session.transaction))

    def _watched(self, frame: Frame) -> Frame:
        points = self.server.failpoints
        return frame if points is None else points.watched(frame)

    async def _run(self, work: Work[T], frame: Frame, reads: type[RepeatedReads] | None = None) -> T:
        until = self._until
        call = Call(asyncio.get_running_loop().time() + self.seconds if until is None else until)
        try:
            async with call.limit:
                for attempt in range(MAX_TRIES - 1):
                    try:
                        return await self._try(work, frame, call, reads)
                    except _Conflict:
                        # Nothing was done. With jitter, so that others with the same conflict do not retry in step.
                        await asyncio.sleep(random.uniform(0, 0.005 * (attempt + 1)))
                return await self._try(work, frame, call, reads)
        except _Conflict as conflict:
            raise translate(conflict.reason, self.server.shown) from conflict.reason
        except TimeoutError as error:
            raise self._too_late(maybe_done=call.doubtful) from error
        finally:
            call.end()

    def _too_late(self, *, maybe_done: bool) -> StoreUnavailable:
        why = f"; {self.server.obstacle.text}" if self.server.obstacle.text else ""
        told = f"{self.server.shown}: no answer within {self.seconds:g} s{why}"
        return StoreUnavailable(told, maybe_done=maybe_done)

    async def _try(self, work: Work[T], frame: Frame, call: Call, reads: type[RepeatedReads] | None) -> T:
        pool = self.server.pool()
        try:
            session = await pool.take()
        except TROUBLE as error:
            if is_conflict(error):  # while a new session was prepared
                self.server.conflicts.add()
                raise _Conflict(error) from error
            raise translate(error, self.server.shown) from error
        session.ending = session.spoken = False
        call.watch(session)
        try:
            await session.replan()
            async with frame(session):
                return await work(Db(reads(session, self.server.conflicts) if reads else session, self.server.texts))
        except WindlassError:
            raise
        except asyncio.CancelledError:
            call.doubtful = session.ending
            session.give_up()
            raise
        except asyncpg.DataError as error:
            # Invalid text never reached the server, and is not the server's fault.
            if isinstance(error.__cause__, UnicodeError):
                raise error.__cause__ from None
            raise translate(error, self.server.shown) from error
        except TROUBLE as error:
            if is_conflict(error):
                self.server.conflicts.add()
                raise _Conflict(error) from error
            if session.alive and (is_lost(error) or state_of(error) == READ_ONLY):
                session.drop()
            if isinstance(error, UNSENT) and not session.spoken and session.leaving is None:
                raise _Conflict(error) from error
            told = translate(
                error, self.server.shown, maybe_done=session.ending, lost=self.server.address.profile.lost
            )
            if session.leaving is not None and (is_lost(error) or state_of(error) == CANCELLED):
                raise self._too_late(maybe_done=getattr(told, "maybe_done", False)) from error
            raise told from error
        finally:
            call.unwatch()
            pool.give(session)


class _Conflict(Exception):
    """Nothing was done, and a retry helps: a conflict, or a connection that was dead before anything was sent."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _plainly(session: Session) -> AbstractAsyncContextManager[None]:
    """A statement is its own transaction, except behind a pooler."""
    return session.transaction() if session.pooled else nullcontext()
