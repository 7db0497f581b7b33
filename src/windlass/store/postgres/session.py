"""One connection to the server, used by one verb at a time.

Straight to the server a single statement is its own transaction, prepared once and answered in one round trip. Behind
a pooler that lends its connections for one transaction at a time, nothing may be left on a connection: there every
verb is a transaction that says for itself what it needs, and no statement outlives it.
"""

import asyncio
import contextlib
import os
import select
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.postgres.query import Statement, numbered
from windlass.store.postgres.trouble import TROUBLE, is_lost

SETTINGS = {
    "default_transaction_isolation": "read committed",
    # A process that is stopped in the middle of a transaction must not hold its rows from the others for ever.
    "idle_in_transaction_session_timeout": "60000",
    # Every statement here has one good plan, by an index. The planner must not be led astray by statistics that are
    # old, or of a table that was empty a moment ago; nor collect and sort all that is due for the sake of a few.
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    # Not by `jit` itself: the driver turns that off for a moment when it learns a type, and if it finds it off leaves
    # it so for good. Behind a pooler that would be somebody else's session.
    "jit_above_cost": "-1",
    "plan_cache_mode": "force_generic_plan",
}
REPLAN_EVERY: Micros = 10 * SECOND
"""A plan that was made while a table was empty would walk through all that has come since, as long as nothing tells
the planner. So plans are thrown away now and then; to make them anew takes a few milliseconds."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_POOLED = f"{_BEGIN}; " + "; ".join(
    f"SET LOCAL {name} = {value}" for name, value in SETTINGS.items() if name != "default_transaction_isolation"
)
LARGEST_STATEMENT = 100_000
CACHED_STATEMENTS = 200
LEAVE_SECONDS = 2.0
MAIL_ROUNDS = 5
"""Turns of the event loop until what has arrived is read, and a closed line is known to be closed."""
SILENCE_SECONDS = 10
"""A line on which nothing comes through for so long is dead, even if nobody has closed it."""


class Session:
    """A connection and how it may be used."""

    def __init__(self, connection: "asyncpg.Connection[Any]", *, pooled: bool) -> None:
        self.connection = connection
        self.pooled = pooled
        self._open = False
        self.ending = False
        """Whether a commit is under way, or a statement that is one: if the line is cut now, nobody knows."""
        self.spoken = False
        """Whether the server has heard anything of the call that this session was taken for."""
        self._planned = since_boot()

    prepare = staticmethod(numbered)

    @property
    def alive(self) -> bool:
        """Whether it can still be used, as far as is known without asking."""
        return not self.connection.is_closed()

    async def answers(self) -> bool:
        """Whether it can still be used, now that it has been idle: a server that went away has said so by now.

        Without a round trip: only what has arrived is looked at. What is found dead here was sent nothing, so another
        connection may take its place without anybody knowing.
        """
        rounds = MAIL_ROUNDS if self.alive and self._has_mail() else 0
        while rounds and self.alive:
            await asyncio.sleep(0)
            rounds -= 1
        return self.alive

    async def replan(self) -> None:
        """Throw old plans away. Behind a pooler none is kept."""
        if not self.pooled and since_boot() - self._planned >= REPLAN_EVERY:
            await self.connection.execute("DISCARD PLANS")
            self._planned = since_boot()

    def _has_mail(self) -> bool:
        poll = select.poll()
        poll.register(_socket(self.connection).fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a statement."""
        self.ending = not self._open
        found: list[Any] = await self.connection.fetch(statement.text, *[values[name] for name in statement.names])
        self.ending, self.spoken = False, True
        return found

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute; how many rows it changed."""
        self.ending = not self._open
        tag = await self.connection.execute(statement.text, *[values[name] for name in statement.names])
        self.ending, self.spoken = False, True
        return int(tag.rpartition(" ")[2])

    async def script(self, text: str) -> None:
        """Several statements at once, without values."""
        await self.connection.execute(text)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """All or nothing."""
        await self.connection.execute(_BEGIN_POOLED if self.pooled else _BEGIN)
        self._open = self.spoken = True
        try:
            yield
            self.ending = True
            await self.connection.execute("COMMIT")
            self.ending = False
        except Exception as error:
            if not self.ending and self.alive and not is_lost(error):
                await self.connection.execute("ROLLBACK")
            raise
        finally:
            self._open = False

    async def close(self) -> None:
        """Take leave."""
        with contextlib.suppress(*TROUBLE):
            await self.connection.close(timeout=LEAVE_SECONDS)

    def drop(self) -> None:
        """Hang up, whatever is under way."""
        self.connection.terminate()

    def abandon(self) -> None:
        """Let go where the event loop is over: what the driver would have it do is done at once."""
        if not self.alive:
            return
        transport: Any = self.connection._transport
        with contextlib.suppress(RuntimeError):
            self.connection.terminate()
        if over := getattr(transport, "_call_connection_lost", None):
            over(None)  # other kinds of loops close what was open on them


Frame = Callable[[Session], AbstractAsyncContextManager[None]]
"""What is around the statements of a verb: a transaction, or nothing."""


async def connect(dsn: str, seconds: float, *, pooled: bool | None, part: str = "client") -> Session:
    """A new session; `pooled` is None as long as nobody knows whether a pooler is in between.

    The server's list of sessions shows whose it is: `part` of what, and in which process.
    """
    if pooled:
        # Without a name: a pooler would have to set it anew whenever it lends a connection to somebody else.
        return Session(await _connect(dsn, seconds, {}, 0), pooled=True)
    named = {"application_name": f"windlass {part} {os.getpid()}"}
    try:
        connection = await _connect(dsn, seconds, {**named, **SETTINGS}, CACHED_STATEMENTS)
    except asyncpg.PostgresError as error:
        if pooled is None and "startup parameter" in str(error):
            # Only a pooler refuses settings that every server has.
            return await connect(dsn, seconds, pooled=True)
        raise
    if pooled is None and await _is_pooled(connection):
        connection.terminate()
        return await connect(dsn, seconds, pooled=True)
    return Session(connection, pooled=False)


async def _connect(dsn: str, seconds: float, settings: dict[str, str], cached: int) -> "asyncpg.Connection[Any]":
    connection: asyncpg.Connection[Any] = await asyncpg.connect(
        dsn,
        timeout=seconds,
        statement_cache_size=cached,
        max_cached_statement_lifetime=0,
        max_cacheable_statement_size=LARGEST_STATEMENT,
        server_settings=settings,
    )
    _watch_line(_socket(connection))
    return connection


def _socket(connection: "asyncpg.Connection[Any]") -> Any:
    return connection._transport.get_extra_info("socket")


def _watch_line(line: Any) -> None:
    """Have the kernel notice a line that is dead without a word. What a system does not know, it goes without."""
    if line.family == socket.AF_UNIX:
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": SILENCE_SECONDS // 2,
        "TCP_KEEPINTVL": 1,
        "TCP_KEEPCNT": SILENCE_SECONDS // 2,
        "TCP_USER_TIMEOUT": SILENCE_SECONDS * 1000,
    }
    for name, value in wanted.items():
        if (option := getattr(socket, name, None)) is not None:
            line.setsockopt(socket.IPPROTO_TCP, option, value)


async def _is_pooled(connection: "asyncpg.Connection[Any]") -> bool:
    """A pooler introduces itself by a number of its own, not by that of the process that serves us."""
    pid = connection.get_server_pid()
    tag: str = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {int(pid)}")
    return tag != "SELECT 1"
