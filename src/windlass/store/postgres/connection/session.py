"""One connection to the server, used by one verb at a time.

On a direct connection a single statement is its own transaction, prepared once and answered in one round trip. A
pooler in transaction mode may use another connection for each transaction: behind one, every verb is a transaction
that makes its own settings, and no prepared statement is kept.
"""

import asyncio
import contextlib
import select
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any

import asyncpg
from asyncpg import connect_utils

from windlass.native import poll
from windlass.store.postgres.connection.db import Statement, numbered
from windlass.store.postgres.connection.plans import Plans
from windlass.store.postgres.connection.trouble import TROUBLE, is_lost

CANCEL_SECONDS = 2.0
"""How long a cancel request may take; then the connection is dropped."""


async def close_cancelled(connection: "asyncpg.Connection[Any]") -> None:
    """Close the connection; the driver first waits for the statement that it cancels."""
    transport: Any = connection._transport
    try:
        with contextlib.suppress(*TROUBLE):
            async with asyncio.timeout(CANCEL_SECONDS):
                await connection.close()
    finally:
        connection.terminate()
        transport.abort()  # drivers before 0.32 leave it open if closing is interrupted


async def request_cancel(connection: "asyncpg.Connection[Any]", pid: int, secret: int) -> None:
    """Cancel the backend's statement through a new connection; this one may be closed already."""
    with contextlib.suppress(Exception):  # without the request, the server notices the closed connection later
        async with asyncio.timeout(CANCEL_SECONDS):
            await connect_utils._cancel(
                loop=asyncio.get_running_loop(),
                addr=connection._addr,
                params=connection._params,
                backend_pid=pid,
                backend_secret=secret,
            )


SETTINGS = {
    "default_transaction_isolation": "read committed",
    # A process that is stopped in a transaction must not hold its rows for ever.
    "idle_in_transaction_session_timeout": "60000",
    # A backend that waits for a lock notices a killed client only if it checks.
    "client_connection_check_interval": "2000",
    # Every statement has one good plan, by an index. Without these settings, stale statistics, or those of an empty
    # table, could make the planner scan a table, or sort everything that is due.
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    # Not `jit = off`: the driver turns jit off while it looks up a type, and back on only if it was on. Behind a
    # pooler it would leave it off in another client's session.
    "jit_above_cost": "-1",
    "plan_cache_mode": "force_generic_plan",
}
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
CHECK = "client_connection_check_interval"
"""The one setting that some systems refuse."""
STANDBY_WAIT = "SyncRepWaitForLSN"
"""The server's function that waits for a standby, which identifies its warning in every language."""
READ_ROUNDS = 5
"""Iterations of the event loop until a closed connection is known to be closed."""


class StandbyWait:
    """Whether the server warned that a commit did not wait for its standby."""

    def __init__(self) -> None:
        self.cut_off = False

    def on_notice(self, _: object, message: Any) -> None:
        """Called for notices and warnings, before the answer to their statement."""
        if message.server_source_function == STANDBY_WAIT:
            self.cut_off = True


class Session:
    """A connection and how it may be used."""

    def __init__(
        self, connection: "asyncpg.Connection[Any]", *, pooled: bool, settings: Mapping[str, str] = SETTINGS
    ) -> None:
        self.connection = connection
        self.pooled = pooled
        self._settings = {name: value for name, value in settings.items() if name != "default_transaction_isolation"}
        """Set in each transaction, behind a pooler."""
        self._open = False
        self.ending = False
        """Whether a commit is in flight: if the connection is lost now, the outcome is unknown."""
        self.spoken = False
        """Whether the current call has sent anything."""
        self._plans = Plans(connection)
        self._input = poll()
        self._input.register(socket_of(connection).fileno(), select.POLLIN)
        self._key: tuple[int, int] = (connection.get_server_pid(), connection._protocol.backend_secret)
        self._leaving: asyncio.Task[None] | None = None
        self._let_go = asyncio.Event()
        self._standby = StandbyWait()
        connection.add_log_listener(self._standby.on_notice)
        self.gone = False
        """Whether the session was given up, and its backend has ended or received a cancel request."""

    prepare = staticmethod(numbered)

    @property
    def alive(self) -> bool:
        """Whether the session is usable, as far as is known."""
        return self._leaving is None and not self.connection.is_closed()

    @property
    def in_transaction(self) -> bool:
        """Whether several statements are one transaction now."""
        return self._open

    @property
    def leaving(self) -> "asyncio.Task[None] | None":
        """The task that closes the session, if it was given up or its statement was cancelled."""
        return self._leaving

    async def answers(self) -> bool:
        """Whether an idle session is usable, by what has arrived, without a round trip.

        If it is not, nothing was sent on it, and the caller can use another session.
        """
        rounds = READ_ROUNDS if self.alive and self._input.poll(0) else 0
        while rounds and self.alive:
            await asyncio.sleep(0)
            rounds -= 1
        return self.alive

    async def replan(self, *, urgent: bool = False) -> None:
        """Renew plans that are old; behind a pooler there are none."""
        if not self.pooled:
            await self._plans.renew(urgent=urgent)

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a statement."""
        self.ending = not self._open
        self._plans.used(statement.text)
        found: list[Any] = await self.connection.fetch(statement.text, *[values[name] for name in statement.names])
        self._check_answer()
        self.ending, self.spoken = False, True
        return found

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute a statement; returns the number of changed rows."""
        self.ending = not self._open
        self._plans.used(statement.text)
        tag = await self.connection.execute(statement.text, *[values[name] for name in statement.names])
        self._check_answer()
        self.ending, self.spoken = False, True
        return int(tag.rpartition(" ")[2])

    async def script(self, text: str) -> None:
        """Execute several statements at once, without values."""
        await self.connection.execute(text)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Surround statements with a transaction."""
        await self._begin()
        self._open = self.spoken = True
        try:
            yield
            self.ending = True
            await self.connection.execute("COMMIT")
            self._check_answer()
            self.ending = False
        except Exception as error:
            if not self.ending and self.alive and not is_lost(error):
                await self.connection.execute("ROLLBACK")
            raise
        finally:
            self._open = False

    async def _begin(self) -> None:
        if not self.pooled:
            await self.connection.execute(_BEGIN)
            return
        try:
            await self.connection.execute(_begin_pooled(self._settings))
        except asyncpg.PostgresError as error:
            if CHECK not in str(error):
                raise
            await self.connection.execute("ROLLBACK")
            self._settings = without_check(self._settings)
            await self.connection.execute(_begin_pooled(self._settings))

    def _check_answer(self) -> None:
        """Reject an answer that follows a cancel request, of this process or another.

        If a commit is cancelled while it waits for a standby, the server reports success although the standby may not
        have the transaction.
        """
        if self._leaving is not None:
            raise ConnectionError("no answer before it was cancelled")
        if self._standby.cut_off:
            raise ConnectionError("the wait for a standby was cancelled, and it may not have this transaction")

    async def close(self) -> None:
        """Cancel what is in flight, and close; at once if this is cancelled, as the loop may be about to end."""
        try:
            await asyncio.wait([self.give_up()])
        except asyncio.CancelledError:
            self.drop()
            raise

    def cancel_statement(self) -> None:
        """Cancel the statement in flight; its caller gets the server's answer, or an error."""
        self._start_leaving()

    def give_up(self) -> "asyncio.Task[None]":
        """Cancel and close in the background, within a bounded time."""
        self._let_go.set()
        return self._start_leaving()

    def _start_leaving(self) -> "asyncio.Task[None]":
        if self._leaving is None:
            task = asyncio.get_running_loop().create_task(self._leave(), context=Context())
            # If the loop stops at once, the server cleans up by itself.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            self._leaving = task
        return self._leaving

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                if not self._let_go.is_set():
                    # Not through the driver, which does not report the outcome of a statement that it cancels.
                    await request_cancel(self.connection, *self._key)
                    await self._let_go.wait()
        except TimeoutError:
            self.drop()
        await close_cancelled(self.connection)
        self.gone = True

    async def finish(self) -> None:
        """Make sure that the session is closed, even if the task that closes it was cancelled."""
        if self._leaving is not None and not self._leaving.done():
            await asyncio.wait([self._leaving])
        if not self.gone:
            self.drop()
            await request_cancel(self.connection, *self._key)
            self.gone = True

    def drop(self) -> None:
        """Close without a handshake, because nothing is in flight or the connection is lost."""
        self.connection.terminate()

    def abandon(self) -> None:
        """Close after the event loop has ended: do at once what the driver would schedule."""
        if self.connection.is_closed():
            return
        transport: Any = self.connection._transport
        with contextlib.suppress(RuntimeError):
            self.connection.terminate()
        if over := getattr(transport, "_call_connection_lost", None):
            over(None)  # other kinds of loops close their transports


Frame = Callable[[Session], AbstractAsyncContextManager[None]]
"""What surrounds the statements of a verb: a transaction, or nothing."""


def socket_of(connection: "asyncpg.Connection[Any]") -> Any:
    return connection._transport.get_extra_info("socket")


def without_check(settings: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name != CHECK}


def _begin_pooled(settings: dict[str, str]) -> str:
    return "; ".join([_BEGIN, *(f"SET LOCAL {name} = {value}" for name, value in settings.items())])
