"""The connections of one event loop: opened when needed, closed when idle or broken."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from windlass.store.postgres.connection.session import Session

IDLE_SECONDS = 30.0
"""Connections that are idle for this long are closed."""

Opener = Callable[[], Awaitable[Session]]
Greeter = Callable[[Session], Awaitable[None]]


class Pool:
    """A bounded pool; callers wait in order of arrival."""

    def __init__(
        self, open_session: Opener, on_open: Greeter, most: int, on_loop_end: Callable[[], Awaitable[None]]
    ) -> None:
        """`on_open` is called with each new session, `on_loop_end` when the event loop ends."""
        self._open_session = open_session
        self._greet = on_open
        self._on_loop_end = on_loop_end
        self._presence: AsyncGenerator[None] | None = None
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._free: list[Session] = []
        self._taken: set[Session] = set()
        self._opening: set[asyncio.Task[Any]] = set()
        """Tasks that open a connection."""
        self._leaving: set[Session] = set()
        """Given up, and perhaps still busy on the server."""
        self._count = 0
        self._line: deque[asyncio.Future[Session | None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._lowest = 0
        self._asked_to_close = False
        self.closed = False
        self.pid = os.getpid()

    async def take(self) -> Session:
        """A session for exclusive use until it is given back, first come, first served.

        A free session goes to the first waiter, never back to the pool: else a caller that asks in a tight loop would
        always overtake a waiter that has to be woken first.
        """
        if self._presence is None:
            self._presence = self._be_there()
            await anext(self._presence)
        self._check_open()
        while self._free:
            session = self._free.pop()
            self._lowest = min(self._lowest, len(self._free))
            if await self._answers(session):
                self._taken.add(session)
                return session
            self._count -= 1
        if self._count < self._most:
            self._count += 1
            return await self._open()
        return await self._stand_in_line()

    def _check_open(self) -> None:
        if self.closed:
            # A call started by a timer while the loop ends would never finish.
            raise ConnectionError("its event loop ends")

    async def _stand_in_line(self) -> Session:
        turn: asyncio.Future[Session | None] = self._loop.create_future()
        self._line.append(turn)
        try:
            session = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())  # our turn had come: pass it on
            raise
        if session is not None and session.alive:
            return session
        if session is not None:
            self._taken.discard(session)
        return await self._open()

    async def _answers(self, session: Session) -> bool:
        try:
            return await session.answers()
        except BaseException:
            self.give(session)
            raise

    async def _open(self) -> Session:
        """The caller has counted it."""
        task = asyncio.current_task()
        assert task is not None
        self._opening.add(task)
        try:
            self._check_open()
            session = await self._open_session()
        except BaseException:
            self._pass_on(None)
            raise
        finally:
            self._opening.discard(task)
        try:
            await self._greet(session)
        except BaseException:
            session.give_up()
            self.give(session)
            raise
        self._taken.add(session)
        return session

    def give(self, session: Session) -> None:
        """Return a session; a broken one makes room for a new one."""
        self._taken.discard(session)
        if self._loop.is_closed():
            session.abandon()
        elif session.leaving is not None:
            self._leaving.add(session)
            session.give_up().add_done_callback(lambda _: self._left(session))
        elif session.alive and not self.closed:
            self._pass_on(session)
        else:
            session.drop()
            self._pass_on(None)

    def _left(self, session: Session) -> None:
        """Now there is room for another. A session whose close was interrupted is closed when the loop ends."""
        if session.gone:
            self._leaving.discard(session)
        self._pass_on(None)

    def _pass_on(self, session: Session | None) -> None:
        """Give a session, or the room for one, to the first waiter; else to the pool."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                if session is not None:
                    self._taken.add(session)
                turn.set_result(session)
                return
        if session is None:
            self._count -= 1
        else:
            self._taken.discard(session)
            self._free.append(session)
            self._tidy()

    def _tidy(self) -> None:
        """Schedule the closing of idle sessions."""
        if self._sweep is None:
            self._lowest = len(self._free)
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._let_go)

    def _let_go(self) -> None:
        self._sweep = None
        for session in self._free[: self._lowest]:
            session.drop()
            self._count -= 1
        del self._free[: self._lowest]
        if self._free:
            self._tidy()

    async def _be_there(self) -> AsyncGenerator[None]:
        """An ending event loop, as in asyncio.run(), closes its open generators, and so notifies us."""
        try:
            yield
        finally:
            await self._on_loop_end()
            await self._hang_up()
            if not self._asked_to_close:
                await self._end_late()

    async def _end_late(self) -> None:
        """The loop ends: cancel tasks that started too late to be cancelled with the others."""
        opening = self._opening - {asyncio.current_task()}
        for task in opening:
            task.cancel()
        if opening:
            await asyncio.wait(opening)
        for session in self._taken:
            session.drop()
        self._taken.clear()

    async def close(self) -> None:
        """Close; sessions in use are closed when they are given back."""
        self._asked_to_close = True
        if self._presence is not None:
            await self._presence.aclose()
        else:
            await self._hang_up()

    async def _hang_up(self) -> None:
        self.closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        free, self._free = self._free, []
        for session in free:
            self._count -= 1
            await session.close()
        for session in list(self._leaving):
            await session.finish()
            self._leaving.discard(session)

    def abandon(self) -> None:
        """Abandon without I/O: the loop is closed, or this is a forked child."""
        self.closed = True
        left, self._free = [*self._free, *self._taken, *self._leaving], []
        self._taken.clear()
        self._leaving.clear()
        if self.pid == os.getpid():
            for session in left:
                session.abandon()
