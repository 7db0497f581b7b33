"""Signals callers that their jobs have ended, by a NOTIFY in the commit that ends a job.

Only the ends of jobs for which a client waits are notified, on a channel and a connection of its own. A settlement
that is in flight when the client's wait is stored may not see it. The client then sees the end of the job by the read
that follows, or by its polls.
"""

import asyncio
import contextlib
import secrets
from contextvars import Context
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import DAY, SECOND
from windlass.errors import WindlassError
from windlass.store.contract_upkeep import OnEnded
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.hints import why_no_hints
from windlass.store.postgres.connection.server import Server
from windlass.store.postgres.connection.session import CANCEL_SECONDS, Session
from windlass.store.postgres.connection.trouble import TROUBLE, translate

FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0
OPEN_SECONDS = 30.0
LASTS = DAY
"""How long a stored wait is valid; a longer wait is stored again."""


class PostgresCompletionWatcher:
    """Listens on a connection of its own, and stores waits through it."""

    def __init__(self, server: Server, on_ended: OnEnded) -> None:
        self._server = server
        self._on_ended = on_ended
        self._channel = f"windlass.{secrets.token_hex(12)}"
        self._watched: set[JobId] = set()
        self._written: set[JobId] = set()
        """Jobs whose waits were stored through this connection."""
        self._stored: set[JobId] = set()
        """Jobs whose waits may be stored, by a cancelled call or the previous connection too."""
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listened = False
        self.outage: str | None = "it does not listen yet"
        if not server.notifies:
            self.outage = why_no_hints(server.address)

    def watch(self, job: JobId, queue: str) -> None:
        if job in self._watched or not self._server.notifies:
            return
        self._watched.add(job)
        self._news.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def unwatch(self, job: JobId) -> None:
        self._watched.discard(job)
        if job in self._stored:
            self._news.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        """Listen, again after a lost connection, unless there is a pooler."""
        pause = FIRST_PAUSE
        while not self._server.pooled:
            self._listened = False
            try:
                await self._listen()
            except (*TROUBLE, WindlassError) as error:
                self.outage = str(error if isinstance(error, WindlassError) else translate(error, self._server.shown))
            pause = FIRST_PAUSE if self._listened else min(2 * pause, MAX_PAUSE)
            await asyncio.sleep(pause)
        self.outage = "there is a pooler, which passes on no notifications"

    async def _listen(self) -> None:
        """Open a connection, and listen until it is lost."""
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
                await self._on_loop_end(session)

    async def _keep(self, session: Session) -> None:
        """Store a wait for each watched job, and delete the waits for the others."""
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
                self._stored.update(fresh)
                await db.rows("watch_results", {"ids": fresh, "channel": self._channel, "length": LASTS})
                self._written.update(fresh)
                self._stored.update(fresh)  # again: a notification of the previous wait may have come meanwhile
                self.outage, self._listened = None, True
                self._on_ended(fresh)
            if given_up := sorted(self._stored - self._watched):
                self._written.difference_update(given_up)
                await db.rows("unwatch_results", {"ids": given_up, "channel": self._channel})
                # Only after the deletion, which is repeated if it is cancelled.
                self._stored.difference_update(given_up)

    def _on_notice(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        """A job has ended, and its wait was deleted."""
        job = str(payload)
        self._written.discard(job)
        self._stored.discard(job)
        if job in self._watched:
            self._watched.discard(job)
            self._on_ended((job,))

    async def _on_loop_end(self, session: Session) -> None:
        """Delete the stored waits, and close; a wait that is left over expires."""
        if session.alive and self._stored:
            with contextlib.suppress(*TROUBLE, asyncio.CancelledError):
                values = {"ids": sorted(self._stored), "channel": self._channel}
                async with asyncio.timeout(CANCEL_SECONDS):
                    await Db(session, self._server.texts).rows("unwatch_results", values)
        await session.close()
