"""The connections of one event loop: opened when needed, closed when idle or broken."""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from windlass.store.postgres.connection.session import Session

IDLE_SECONDS = 30.0
"""Connections that are idle for this long are closed."""
CLOSE_SECONDS = 2.0
"""How long `close` waits for calls in flight; a longer call ends with its event loop."""

Opener = Callable[[], Awaitable[Session]]
Greeter = Callable[[Session], Awaitable[None]]


class Pool:
    """A bounded pool; callers wait in order of arrival."""

    def __init__(
        self, open_session: Opener, on_open: Greeter, max_size: int, on_loop_end: Callable[[], Awaitable[None]]
    ) -> None:
        """`on_open` is called with each new session, `on_loop_end` when the event loop ends."""
        self._open_session = open_session
        self._prepare_session = on_open
        self._on_loop_end = on_loop_end
        self._loop_guard: AsyncGenerator[None] | None = None
        self._max_size = max_size
        self._loop = asyncio.get_running_loop()
        self._free: list[Session] = []
        self._taken: set[Session] = set()
        self._opening: set[asyncio.Task[Any]] = set()
        """Tasks that open a connection."""
        self._leaving: set[Session] = set()
        """Sessions that were given up, and may still be busy on the server."""
        self._count = 0
        self._waiters: deque[asyncio.Future[Session | None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._least_free = 0
        self._returned = asyncio.Event()
        """Set when a session was returned, or could not be opened."""
        self.closed = False
        self.pid = os.getpid()

    async def take(self) -> Session:
        """A session for exclusive use, until it is returned; first come, first served.

        While callers wait, a returned session goes to the first of them, not back to the pool: a caller in a tight
        loop would otherwise always overtake one that must be woken first.
        """
        if self._loop_guard is None:
            self._loop_guard = self._until_loop_ends()
            await anext(self._loop_guard)
        self._check_open()
        while self._free:
            session = self._free.pop()
            self._least_free = min(self._least_free, len(self._free))
            self._taken.add(session)
            if await self._answers(session):
                return session
            self._taken.discard(session)
            self._count -= 1
        if self._count < self._max_size:
            self._count += 1
            return await self._open()
        return await self._wait()

    def lend(self) -> Session | None:
        """A free session for longer use, until it is returned; None if none is free, or the pool has only one."""
        if self.closed or not self._free or self._max_size < 2:
            return None
        session = self._free.pop()
        self._least_free = min(self._least_free, len(self._free))
        self._taken.add(session)
        return session

    def _check_open(self) -> None:
        if self.closed:
            # A call that a timer starts while the loop ends would never finish.
            raise ConnectionError("its event loop is about to end")

    async def _wait(self) -> Session:
        waiter: asyncio.Future[Session | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            session = await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())  # it got a session at the same moment
            raise
        if session is not None and session.alive:
            return session
        if session is not None:
            self._taken.discard(session)
        return await self._open()

    def _pass_on(self, session: Session | None) -> None:
        if session is None:
            self._give_to_next(None)
        else:
            self.give(session)

    async def _answers(self, session: Session) -> bool:
        try:
            return await session.answers()
        except BaseException:
            self.give(session)
            raise

    async def _open(self) -> Session:
        """Open a session; the caller has counted it already."""
        task = asyncio.current_task()
        assert task is not None
        self._opening.add(task)
        try:
            session = await self._open_new()
            self._taken.add(session)
            return session
        finally:
            self._opening.discard(task)
            self._note_return()

    async def _open_new(self) -> Session:
        try:
            self._check_open()
            session = await self._open_session()
        except BaseException:
            self._give_to_next(None)
            raise
        try:
            await self._prepare_session(session)
        except BaseException:
            session.give_up()
            self.give(session)
            raise
        return session

    def give(self, session: Session) -> None:
        """Return a session; a broken one is dropped, so that another can be opened."""
        self._taken.discard(session)
        self._note_return()
        if self._loop.is_closed():
            session.abandon()
        elif session.leaving is not None:
            self._leaving.add(session)
            session.give_up().add_done_callback(lambda _: self._after_leaving(session))
        elif session.alive and not self.closed:
            self._give_to_next(session)
        else:
            session.drop()
            self._give_to_next(None)

    def _note_return(self) -> None:
        if not self._loop.is_closed():
            self._returned.set()

    def _after_leaving(self, session: Session) -> None:
        """Make room for another session. One whose closing was interrupted is closed with the loop."""
        if session.gone:
            self._leaving.discard(session)
        self._give_to_next(None)

    def _give_to_next(self, session: Session | None) -> None:
        """Give a session, or permission to open one (None), to the first waiter; without waiters, to the pool."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                if session is not None:
                    self._taken.add(session)
                waiter.set_result(session)
                return
        if session is None:
            self._count -= 1
        else:
            self._taken.discard(session)
            self._free.append(session)
            self._schedule_sweep()

    def _schedule_sweep(self) -> None:
        """Schedule the closing of idle sessions."""
        if self._sweep is None:
            self._least_free = len(self._free)
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        self._sweep = None
        for session in self._free[: self._least_free]:
            session.drop()
            self._count -= 1
        del self._free[: self._least_free]
        if self._free:
            self._schedule_sweep()

    async def _until_loop_ends(self) -> AsyncGenerator[None]:
        """Close everything at the end of the loop, when asyncio.run() closes open generators such as this one."""
        try:
            yield
        finally:
            await self._on_loop_end()
            await self._close_free()
            await self._end_late()
            await self._finish_leaving()

    async def _end_late(self) -> None:
        """Cancel tasks that were started too late for the loop to cancel them with the others at its end."""
        opening = self._opening - {asyncio.current_task()}
        for task in opening:
            task.cancel()
        if opening:
            await asyncio.wait(opening)
        for session in self._taken:
            session.drop()
        self._taken.clear()

    async def close(self) -> None:
        """Close the pool after the calls in flight.

        Those may belong to tasks that no caller awaits. A call that takes longer closes its session when it ends, or
        is interrupted when the loop ends: so the generator that closes sessions at that moment is kept.
        """
        await self._close_free()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._until_returned()
        await self._finish_leaving()
        if self._loop_guard is not None and not self._taken and not self._opening:
            await self._loop_guard.aclose()

    async def _until_returned(self) -> None:
        while self._taken or self._opening:
            self._returned.clear()
            await self._returned.wait()

    async def _close_free(self) -> None:
        self.closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        free, self._free = self._free, []
        for session in free:
            self._count -= 1
            await session.close()

    async def _finish_leaving(self) -> None:
        for session in list(self._leaving):
            await session.finish()
            self._leaving.discard(session)

    def abandon(self) -> None:
        """Drop all sessions without I/O, because the loop is closed or this process is a forked child."""
        self.closed = True
        left, self._free = [*self._free, *self._taken, *self._leaving], []
        self._taken.clear()
        self._leaving.clear()
        if self.pid == os.getpid():
            for session in left:
                session.abandon()
