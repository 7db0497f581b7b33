"""Enqueue in the caller's thread: one job, one statement, no event loop."""

import asyncio
import os
from collections.abc import Sequence

from windlass.core.jobs.job import Enqueued, NewJob
from windlass.errors import StoreUnavailable
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.blocking_session import BlockingSession, Reply
from windlass.store.postgres.connection.db import Statement
from windlass.store.postgres.connection.hints import Hint, Hints
from windlass.store.postgres.connection.pool import Pool
from windlass.store.postgres.connection.server import Server
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import CANCELLED, TROUBLE, translate
from windlass.store.postgres.verbs.plain_job import is_plain, plain_values

MAX_PAYLOAD = 8_000
"""In characters; a larger payload may not fit into the buffer of a socket at once."""
LEND_SECONDS = 1.0
"""How long a caller may wait, after its own job was stored, until a session is lent for the next ones."""


class DirectEnqueue:
    """Enqueues on the session that the loop of the blocking calls has lent, if it has lent one.

    Other enqueues go through the loop: jobs with keys or parents, concurrent calls of several threads, and retries
    after an error of the server, which then has stored nothing.
    """

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._session: BlockingSession | None = None
        self._lending = self._closed = False

    def enqueue(self, access: Access, jobs: Sequence[NewJob]) -> list[Enqueued] | None:
        """Store a job; returns None, and stores nothing, if the loop is needed."""
        session, job = self._session, jobs[0]
        if session is None or not session.usable or len(jobs) > 1 or not is_plain(job):
            return None
        if len(job.payload) > MAX_PAYLOAD:
            return None
        hint = self._hints.next((job.queue,), session.loop)
        try:
            reply = self._ask(access, session, job, hint)
        except BaseException:
            # The job may be stored, and its hint replaced delayed ones.
            self._hints.later_on(session.loop, (job.queue,))
            raise
        if reply is None or reply.error or not reply.rows:
            return None
        if not hint.given:
            self._hints.later_on(session.loop, (job.queue,))
        self._hints.notify()
        return [Enqueued(job.id)]

    def _ask(self, access: Access, session: BlockingSession, job: NewJob, hint: Hint) -> Reply | None:
        values = access.server.texts.with_clock(plain_values(job, hint))
        try:
            reply = session.ask([values[name] for name in session.names], access.seconds)
        except OSError as error:
            raise translate(error, access.server.shown, maybe_done=True) from error
        if reply is not None and (not reply.certain or (reply.cancelled and reply.error != CANCELLED)):
            raise StoreUnavailable(f"{access.server.shown}: the outcome of a commit is unknown", maybe_done=True)
        if reply is not None and reply.cancelled:
            raise access.too_late(maybe_done=False, cancelled=True)
        return reply

    async def lend(self, server: Server) -> None:
        """After a blocking call that needed the loop, lend a session for the next calls. Runs on the loop."""
        if self._closed or self._lending or (self._session is not None and self._session.usable):
            return
        pool = server.pool()
        session = pool.lend()
        if session is None:
            return
        self._lending = True
        try:
            if is_lendable(server, session) and (lent := await self._prepared(server, pool, session)):
                self._session = lent
                return
        except TROUBLE:
            session.give_up()  # the caller's job is stored all the same
        except BaseException:
            session.give_up()
            pool.give(session)
            raise
        finally:
            self._lending = False
        pool.give(session)

    async def _prepared(self, server: Server, pool: Pool, session: Session) -> BlockingSession | None:
        statement = self._statement(server)
        async with asyncio.timeout(LEND_SECONDS):
            await session.replan()
            prepared = await session.connection.prepare(statement.text)
            # End the transaction of the driver's Parse message, which would keep a lock on the table.
            await session.script("SELECT 1")
        return None if self._closed else BlockingSession(session, pool, prepared, statement)

    def close(self) -> None:
        """Give the session back; no other is lent."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @staticmethod
    def _statement(server: Server) -> Statement:
        return server.texts.named("enqueue_one", Session.prepare)


def is_lendable(server: Server, session: Session) -> bool:
    """Whether a thread can use the session's socket, which it cannot behind a pooler or with TLS."""
    transport = session.connection._transport
    return session.alive and not server.pooled and transport.get_extra_info("ssl_object") is None


def begins_without_loop(server: Server) -> bool:
    """Whether an enqueue may begin without a loop, which handles failpoints and the conflicts of profiles."""
    return os.name == "posix" and server.failpoints is None and not server.address.profile.name
