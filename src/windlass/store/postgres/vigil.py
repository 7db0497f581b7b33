"""Who waits for jobs to end writes that down, and is told by NOTIFY with the very commit that ends one of them.

Only jobs that somebody waits for are told of, and only to who waits: each has a channel of his own, and listens on a
connection of his own for as long as he waits. A statement that was ending a job just when that was written down has
not seen it: the look that comes a little later does.
"""

import asyncio
import contextlib
import secrets
from contextvars import Context
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import DAY, SECOND
from windlass.errors import WindlassError
from windlass.store.postgres.access import Server
from windlass.store.postgres.db import Db
from windlass.store.postgres.session import Session
from windlass.store.postgres.trouble import TROUBLE, translate
from windlass.store.vigil import Tell

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
OPEN_SECONDS = 30.0
LASTS = DAY
"""So long it stands that somebody waits; who waits longer writes it again."""


class PostgresVigil:
    """One connection that listens, and what is written down through it."""

    def __init__(self, server: Server, tell: Tell) -> None:
        self._server = server
        self._tell = tell
        self._channel = f"windlass.{secrets.token_hex(12)}"
        self._watched: set[JobId] = set()
        self._written: set[JobId] = set()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._heard = False
        self.silence: str | None = "nobody listens yet"
        if not server.address.notify:
            self.silence = "the store's address says ?notify=off"

    def watch(self, job: JobId, queue: str) -> None:
        if job in self._watched or not self._server.address.notify:
            return
        self._watched.add(job)
        self._news.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def unwatch(self, job: JobId) -> None:
        self._watched.discard(job)
        if job in self._written:
            self._news.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        """Listen, and begin anew when the connection is lost, as long as there is no pooler in between."""
        pause = FIRST_PAUSE
        while not self._server.pooled:
            self._heard = False
            try:
                await self._listen()
            except (*TROUBLE, WindlassError) as error:
                self.silence = str(
                    error if isinstance(error, WindlassError) else translate(error, self._server.shown)
                )
            pause = FIRST_PAUSE if self._heard else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)
        self.silence = "a pooler is in between, which passes on none"

    async def _listen(self) -> None:
        """Until the connection is lost."""
        async with asyncio.timeout(OPEN_SECONDS):
            session = await self._server.open_apart()
        loop = asyncio.get_running_loop()
        try:
            if session.pooled:
                return
            session.connection.add_termination_listener(lambda _: self._news.set())
            await session.connection.add_listener(self._channel, self._on_notice)
            self._written.clear()
            self._news.set()
            await self._keep(session)
        finally:
            if loop.is_closed():
                session.abandon()
            else:
                await self._take_leave(session)

    async def _keep(self, session: Session) -> None:
        """Let what is written be what is watched."""
        db = Db(session, self._server.texts)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LASTS / SECOND / 2):
                    await self._news.wait()
            fresh = sorted(self._watched - self._written if self._news.is_set() else self._watched)
            self._news.clear()
            if not session.alive:
                raise ConnectionError("the connection that listens was lost")
            if fresh:
                await db.rows("await", {"ids": fresh, "channel": self._channel, "length": LASTS})
                self._written.update(fresh)
                self.silence, self._heard = None, True
                self._tell(fresh)
            if given_up := sorted(self._written - self._watched):
                self._written.difference_update(given_up)
                await db.rows("give_up", {"ids": given_up, "channel": self._channel})

    def _on_notice(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        """A job has ended: with that, nothing is written of it any more."""
        job = str(payload)
        self._written.discard(job)
        if job in self._watched:
            self._watched.discard(job)
            self._tell((job,))

    async def _take_leave(self, session: Session) -> None:
        """What is left behind is cleared away some day, if this fails."""
        if session.alive and self._written:
            with contextlib.suppress(*TROUBLE, asyncio.CancelledError):
                values = {"ids": sorted(self._written), "channel": self._channel}
                await Db(session, self._server.texts).rows("give_up", values)
        await session.close()
