"""One connection to the server, used by one verb at a time.

Straight to the server a single statement is its own transaction, prepared once and answered in one round trip. Behind
a pooler that lends its connections for one transaction at a time, nothing may be left on a connection: there every
verb is a transaction that says for itself what it needs, and no statement outlives it.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import asyncpg

from windlass.store.postgres.query import Statement, numbered
from windlass.store.postgres.trouble import is_lost

SETTINGS = {
    "default_transaction_isolation": "read committed",
    # Every statement here has one good plan, by an index. The planner must not be led astray by statistics that are
    # old, or of a table that was empty a moment ago; nor collect and sort all that is due for the sake of a few.
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    # Not by `jit` itself: the driver turns that off for a moment when it learns a type, and if it finds it off leaves
    # it so for good. Behind a pooler that would be somebody else's session.
    "jit_above_cost": "-1",
    "plan_cache_mode": "force_generic_plan",
}
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_POOLED = f"{_BEGIN}; " + "; ".join(
    f"SET LOCAL {name} = {value}" for name, value in SETTINGS.items() if name != "default_transaction_isolation"
)
LARGEST_STATEMENT = 100_000
CACHED_STATEMENTS = 200
LEAVE_SECONDS = 2.0


class Session:
    """A connection and how it may be used."""

    def __init__(self, connection: "asyncpg.Connection[Any]", *, pooled: bool) -> None:
        self.connection = connection
        self.pooled = pooled
        self._open = False
        self.ending = False
        """Whether a commit is under way, or a statement that is one: if the line is cut now, nobody knows."""

    prepare = staticmethod(numbered)

    @property
    def alive(self) -> bool:
        """Whether it can still be used, as far as is known without asking."""
        return not self.connection.is_closed()

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a statement."""
        self.ending = not self._open
        found: list[Any] = await self.connection.fetch(statement.text, *[values[name] for name in statement.names])
        self.ending = False
        return found

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute; how many rows it changed."""
        self.ending = not self._open
        tag = await self.connection.execute(statement.text, *[values[name] for name in statement.names])
        self.ending = False
        return int(tag.rpartition(" ")[2])

    async def script(self, text: str) -> None:
        """Several statements at once, without values."""
        await self.connection.execute(text)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """All or nothing."""
        await self.connection.execute(_BEGIN_POOLED if self.pooled else _BEGIN)
        self._open = True
        try:
            yield
        except Exception as error:
            self._open = False
            if self.alive and not is_lost(error):
                await self.connection.execute("ROLLBACK")
            raise
        self.ending = True
        await self.connection.execute("COMMIT")
        self._open = self.ending = False

    async def close(self) -> None:
        """Take leave."""
        with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await self.connection.close(timeout=LEAVE_SECONDS)

    def drop(self) -> None:
        """Hang up, whatever is under way."""
        self.connection.terminate()


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
    return await asyncpg.connect(
        dsn,
        timeout=seconds,
        statement_cache_size=cached,
        max_cached_statement_lifetime=0,
        max_cacheable_statement_size=LARGEST_STATEMENT,
        server_settings=settings,
    )


async def _is_pooled(connection: "asyncpg.Connection[Any]") -> bool:
    """A pooler introduces itself by a number of its own, not by that of the process that serves us."""
    pid = connection.get_server_pid()
    tag: str = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {int(pid)}")
    return tag != "SELECT 1"
