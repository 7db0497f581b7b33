"""The few connections of one event loop: opened when needed, dropped when idle or broken."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

from windlass.store.postgres.session import Session

IDLE_SECONDS = 30.0
"""After so long a connection that nobody needs is given back to the server."""

Opener = Callable[[], Awaitable[Session]]


class Pool:
    """At most so many connections; who finds none free waits in line."""

    def __init__(self, open_session: Opener, most: int, take_leave: Callable[[], Awaitable[None]]) -> None:
        """`take_leave` is what is still to be said when the loop ends, while there are connections."""
        self._open_session = open_session
        self._take_leave = take_leave
        self._presence: AsyncGenerator[None] | None = None
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._free: list[Session] = []
        self._taken: set[Session] = set()
        self._count = 0
        self._line: deque[asyncio.Future[Session | None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._lowest = 0
        self.closed = False
        self.pid = os.getpid()

    async def take(self) -> Session:
        """A session that is nobody else's until it is given back. First come, first served.

        What becomes free is handed to the first in line, and never put where somebody who comes later could take it:
        whoever asks again and again without a pause would always be faster than one who has to be woken first.
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
            # What a timer starts while the loop ends would not come to its own end.
            raise ConnectionError("its event loop ends")

    async def _stand_in_line(self) -> Session:
        turn: asyncio.Future[Session | None] = self._loop.create_future()
        self._line.append(turn)
        try:
            session = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())  # our turn had come: let it be somebody's
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
        """In the room that was counted for it."""
        try:
            self._check_open()
            session = await self._open_session()
        except BaseException:
            self._pass_on(None)
            raise
        self._taken.add(session)
        return session

    def give(self, session: Session) -> None:
        """Back for others; one that is broken makes room for a new one."""
        self._taken.discard(session)
        if self._loop.is_closed():
            session.abandon()
        elif session.alive and not self.closed:
            self._pass_on(session)
        else:
            session.drop()
            self._pass_on(None)

    def _pass_on(self, session: Session | None) -> None:
        """A session, or only the room for one, goes to the first in line; else it is free."""
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
        """Now and then, let go of those that nobody needed for a while."""
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
        """An event loop that ends, as in asyncio.run(), closes the generators that are open on it: so it tells us."""
        try:
            yield
        finally:
            await self._take_leave()
            await self._hang_up()

    async def close(self) -> None:
        """Hang up; sessions in use go when they are given back."""
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

    def abandon(self) -> None:
        """Its loop is over, or this is a child of the process that it belongs to: only let go."""
        self.closed = True
        left, self._free = [*self._free, *self._taken], []
        self._taken.clear()
        if self.pid == os.getpid():
            for session in left:
                session.abandon()
