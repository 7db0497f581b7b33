"""The ways to the server: with how many connections, how long one waits, and what is tried again."""

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
from windlass.store.postgres.address import Address
from windlass.store.postgres.db import Db, Texts
from windlass.store.postgres.failpoints import armed_commits
from windlass.store.postgres.migrate import is_current, migrate
from windlass.store.postgres.pool import Pool
from windlass.store.postgres.session import Frame, Session, connect
from windlass.store.postgres.trouble import READ_ONLY, RETRIED, TROUBLE, UNSENT, is_lost, state_of, translate

T = TypeVar("T")
Work = Callable[[Db], Awaitable[T]]

CONNECT_SECONDS = 10.0
HOST_SECONDS = 2.0
"""For each of several hosts: one that is silent must not keep us from the others."""
LONGEST_CALL = 20.0
"""A call without a deadline ends too: a line that is dead without a word must not hold a worker for ever."""
MOST_TRIES = 20
MANY = 10_000
"""Jobs of a bulk for which the time of one call must be enough, on a slow machine too."""


class Identity(msgspec.Struct, frozen=True):
    """What one database with its tables is told from others by; the mark is missing where it cannot be seen yet."""

    name: str
    number: int
    mark: str | None


class Part(msgspec.Struct, frozen=True):
    """Who it is that is connected, and with how many connections at most."""

    name: str
    connections: int


class Server:
    """One database and its schema, as this process reaches it; connections belong to event loops."""

    def __init__(self, address: Address, shown: str, clock: Clock | None, part: "Part") -> None:
        self.address = address
        self.shown = shown
        self.texts = Texts(address.schema, clock)
        self.applied: list[str] = []
        self.closed = False
        self.failpoints = armed_commits()
        self._part = part
        self._most = address.connections or part.connections
        self._hosts = address.hosts
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()
        self._pooled: bool | None = None
        self.known: Identity | None = None
        """Which database this is, since the first session."""
        self.met: WeakSet[Any] = WeakSet()
        """Connections of callers that were seen to be of the same database."""
        self.greet: Callable[[Session], Awaitable[None]] | None = None
        """What is done with every new session."""
        self.take_leave: Callable[[], Awaitable[None]] = _in_silence
        """What is still to be said when an event loop ends."""

    @property
    def pooled(self) -> bool:
        """Whether a pooler is known to be in between."""
        return bool(self._pooled)

    def pool(self) -> Pool:
        """The connections of this loop."""
        if self.closed:
            raise StoreUnavailable(f"{self.shown}: this store is closed", lasting=True)
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None and pool.pid != os.getpid():
            pool.abandon()
            pool = None
        if pool is None or pool.closed:
            self._let_go()
            pool = self._pools[loop] = Pool(self._open, self._most, self.take_leave)
        return pool

    def _let_go(self) -> None:
        """What belongs to loops that are over."""
        # Other threads may have loops too: the references are copied in one step.
        for loop in [each for each in (ref() for ref in self._pools.keyrefs()) if each and each.is_closed()]:
            pool = self._pools.pop(loop, None)
            if pool is not None:
                pool.abandon()

    async def open_apart(self) -> Session:
        """A session that is in no pool, for who listens; the caller closes it."""
        if self.closed:
            raise StoreUnavailable(f"{self.shown}: this store is closed", lasting=True)
        return await self._open()

    async def _open(self) -> Session:
        session = await self._reach()
        self._pooled = session.pooled
        try:
            if self.known is None:
                if not await is_current(session, self.texts):
                    frame = Session.transaction if self.failpoints is None else self.failpoints.migration
                    self.applied += await migrate(session, self.texts, frame)
                self.known = await identify(Db(session, self.texts))
            if self.greet is not None:
                await self.greet(session)
        except BaseException:
            session.drop()
            raise
        return session

    async def _reach(self) -> Session:
        """A session on the first host that takes us, beginning with the one that did the last time."""
        hosts = self._hosts
        problems: list[Exception] = []
        for host in hosts:
            try:
                seconds = CONNECT_SECONDS if len(hosts) == 1 else HOST_SECONDS
                session = await connect(host, seconds, pooled=self._pooled, part=self._part.name)
            except TROUBLE as error:
                problems.append(error)
            else:
                self._hosts = sorted(hosts, key=lambda each: each != host)
                return session
        raise problems[0]

    async def close(self) -> None:
        """The end: hang up on this loop; what belongs to others goes with them."""
        self.closed = True
        await self.hang_up()
        self._let_go()

    async def hang_up(self) -> None:
        """Give back the connections of this loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


async def identify(db: Db) -> Identity:
    """Which database a connection, ours or a caller's, is open on."""
    ((name, number, mark),) = await db.rows("identity")
    return Identity(name, number, mark)


async def _in_silence() -> None:
    """Nothing to say."""


class Access:
    """The server, as one user of the store sees it: with a deadline of its own."""

    def __init__(self, server: Server, deadline: float | None) -> None:
        self.server = server
        self.seconds = deadline or LONGEST_CALL
        """How long a call may take."""

    def for_many(self, jobs: int) -> "Access":
        """The same, with a deadline for so many: what is meant for one call is meant for each part of a large one."""
        return Access(self.server, self.seconds * (1 + jobs // MANY))

    async def read(self, work: Work[T]) -> T:
        """Look. Each statement sees what was committed before it began."""
        return await self._run(work, _plainly)

    async def once(self, work: Work[T]) -> T:
        """Do work that is a single statement: it is its own transaction, in one round trip."""
        return await self._run(work, self._watched(_plainly))

    async def write(self, work: Work[T]) -> T:
        """Do the work in a transaction: all of it or nothing."""
        return await self._run(work, self._watched(Session.transaction))

    def _watched(self, frame: Frame) -> Frame:
        points = self.server.failpoints
        return frame if points is None else points.watched(frame)

    async def _run(self, work: Work[T], frame: Frame) -> T:
        call = _Call()
        try:
            async with asyncio.timeout(self.seconds):
                for attempt in range(MOST_TRIES - 1):
                    try:
                        return await self._try(work, frame, call)
                    except _Conflict:
                        # Nothing was done. Not in step with others to whom the same has happened.
                        await asyncio.sleep(random.uniform(0, 0.005 * (attempt + 1)))
                return await self._try(work, frame, call)
        except _Conflict as conflict:
            raise translate(conflict.reason, self.server.shown) from conflict.reason
        except TimeoutError as error:
            raise StoreUnavailable(
                f"{self.server.shown}: no answer within {self.seconds:g} s", maybe_done=call.doubtful
            ) from error

    async def _try(self, work: Work[T], frame: Frame, call: "_Call") -> T:
        pool = self.server.pool()
        try:
            session = await pool.take()
        except TROUBLE as error:
            raise translate(error, self.server.shown) from error
        session.ending = session.spoken = False
        try:
            await session.replan()
            async with frame(session):
                return await work(Db(session, self.server.texts))
        except WindlassError:
            raise
        except asyncio.CancelledError:
            call.doubtful = session.ending
            session.drop()
            raise
        except asyncpg.DataError as error:
            # Text that is no text never reached the server, and is nothing that a server could help with.
            if isinstance(error.__cause__, UnicodeError):
                raise error.__cause__ from None
            raise translate(error, self.server.shown) from error
        except TROUBLE as error:
            if state_of(error) in RETRIED:
                raise _Conflict(error) from error
            if is_lost(error) or state_of(error) == READ_ONLY:
                session.drop()
            if isinstance(error, UNSENT) and not session.spoken:
                raise _Conflict(error) from error
            raise translate(error, self.server.shown, maybe_done=session.ending) from error
        finally:
            pool.give(session)


class _Call:
    """What is to be said of a call that was broken off."""

    doubtful = False


class _Conflict(Exception):
    """Nothing was done, and trying again helps: another was first, or the connection was dead before we spoke."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _plainly(session: Session) -> AbstractAsyncContextManager[None]:
    """A statement is its own transaction, except where it must not be alone."""
    return session.transaction() if session.pooled else nullcontext()
