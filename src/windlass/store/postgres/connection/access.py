"""Access to the server: calls with deadlines and retries."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

import asyncpg

from windlass.errors import StoreUnavailable, WindlassError
from windlass.store.drive import to_loop
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.deadline import Call
from windlass.store.postgres.connection.repeated_reads import RepeatedReads, pause
from windlass.store.postgres.connection.server import Server
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
from windlass.store.records import RowsHeld

T = TypeVar("T")
Work = Callable[[Db], Awaitable[T]]

MAX_CALL = 20.0
"""The deadline of calls that have none: a dead connection must not block a worker for ever."""
MAX_TRIES = 100
"""Enough for the longest write, a bulk of many kinds with keys, parents and known ids in 25 statements: where a
statement or commit in ten fails, thirteen of fourteen tries fail.
"""
LOCK_SECONDS = 5.0
"""How long a call may wait for rows of other transactions, where no lock_timeout ends such a wait.

It begins when the call has a session: a wait for one of a busy pool, or a retry, is no wait for rows.
"""
MANY = 10_000
"""The deadline of a bulk call is longer by its own length for each 10,000 jobs."""


class Access:
    """Runs work on the server, with a deadline and retries."""

    def __init__(
        self,
        server: Server,
        deadline: float | None,
        until: float | None = None,
        *,
        ends_waits: bool = False,
        urgent: bool = False,
    ) -> None:
        self.server = server
        self.seconds = deadline or MAX_CALL
        """How long a call may take."""
        self._until = until
        self._ends_waits = ends_waits
        self._urgent = urgent

    def for_many(self, jobs: int) -> "Access":
        """The same access, with a longer deadline for a bulk of jobs."""
        return Access(self.server, self.seconds * (1 + jobs // MANY))

    def until(self, moment: float | None) -> "Access":
        """The same access for calls that end at a moment of the loop's clock: part of the time was spent on
        waiting.
        """
        return self if moment is None else Access(self.server, self.seconds, moment)

    def urgent(self) -> "Access":
        """The same for calls that jobs wait for: they leave replanning to other calls."""
        return Access(self.server, self.seconds, self._until, ends_waits=self._ends_waits, urgent=True)

    def ending_waits(self) -> "Access":
        """The same access for calls whose waits for rows end with RowsHeld: by a lock_timeout, or else by the
        client.
        """
        if self.server.address.profile.lock_timeouts:
            return self
        return Access(self.server, self.seconds, self._until, ends_waits=True, urgent=self._urgent)

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
        await to_loop()
        until = self._until
        call = Call(asyncio.get_running_loop().time() + self.seconds if until is None else until)
        try:
            async with call.limit:
                for attempt in range(MAX_TRIES - 1):
                    try:
                        return await self._try(work, frame, call, reads)
                    except _Conflict:
                        await pause(attempt + 1)  # nothing was done
                return await self._try(work, frame, call, reads)
        except _Conflict as conflict:
            raise translate(conflict.reason, self.server.shown) from conflict.reason
        except TimeoutError as error:
            raise self.too_late(maybe_done=call.doubtful) from error
        finally:
            call.end()

    def too_late(self, *, maybe_done: bool, cancelled: bool = False) -> StoreUnavailable:
        """The error of a call that had no answer in time."""
        why = f"; {self.server.obstacle.text}" if self.server.obstacle.text else ""
        held = cancelled and self._ends_waits
        seconds = min(self.seconds, LOCK_SECONDS) if held else self.seconds
        problem = f"{self.server.shown}: no answer within {seconds:g} s{why}"
        if held:
            return RowsHeld(f"{problem}; another transaction may hold rows that it needs")
        return StoreUnavailable(problem, maybe_done=maybe_done)

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
        call.watch(session, LOCK_SECONDS if self._ends_waits else None)
        try:
            await session.replan(urgent=self._urgent)
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
            translated = translate(
                error, self.server.shown, maybe_done=session.ending, lost=self.server.address.profile.lost
            )
            if session.leaving is not None and (is_lost(error) or state_of(error) == CANCELLED):
                cancelled = state_of(error) == CANCELLED
                raise self.too_late(
                    maybe_done=getattr(translated, "maybe_done", False), cancelled=cancelled
                ) from error
            raise translated from error
        finally:
            call.unwatch()
            pool.give(session)


class _Conflict(Exception):
    """Nothing was done, and a retry helps: a conflict, or a connection that was dead before anything was sent."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _plainly(session: Session) -> AbstractAsyncContextManager[None]:
    """Run a statement as its own transaction, except behind a pooler."""
    return session.transaction() if session.pooled else nullcontext()
