"""Numbered, forward-only migrations, applied on first use and by `windlass migrate`.

Each says whether it breaks older code. Code that finds unknown steps continues unless one of them does: in a rolling
deploy old workers run beside new ones.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from windlass.errors import StoreUnavailable
from windlass.store.migrations import Migration, check_newer, migrations_of
from windlass.store.postgres.connection.db import Db, Texts, in_schema
from windlass.store.postgres.connection.session import Frame, Session

T = TypeVar("T")

LOCK_SECONDS = 2.0
"""How long a statement may wait for a lock."""
PAUSE_SECONDS = 1.0
"""Pause between two tries, so that others can proceed."""
PATIENCE_SECONDS = 60.0
"""Then the error names the holders of the locks; callers with a deadline give up before."""
SHOWN = 3


class Obstacle:
    """What blocks a change of the schema, as far as it is known."""

    def __init__(self) -> None:
        self.text = ""

    async def find(self, db: Db) -> None:
        """Find the transactions that hold locks in this schema, the oldest first."""
        found = await db.rows("schema_locks", {"schema": db.schema, "limit": SHOWN})
        holders = [
            f"process {pid} ({name or 'no name'}), in a transaction since {since:%Y-%m-%d %H:%M:%S} UTC: {query}"
            for pid, name, since, query in found
        ]
        self.text = f"the migration waits for {', and for '.join(holders) or 'a transaction that has ended by now'}"


async def with_locks(
    session: Session, texts: Texts, frame: Frame, work: Callable[[], Awaitable[T]], obstacle: Obstacle
) -> T:
    """Work in a transaction with a short lock_timeout, until it gets all locks."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE_SECONDS
    while True:
        try:
            async with frame(session):
                await session.script(f"SET LOCAL lock_timeout = {round(LOCK_SECONDS * 1000)}")
                done = await work()
        except asyncpg.LockNotAvailableError as error:
            await obstacle.find(Db(session, texts))
            if loop.time() > end:
                raise StoreUnavailable(f"{obstacle.text}; end that, and try again") from error
        else:
            obstacle.text = ""
            return done
        await asyncio.sleep(PAUSE_SECONDS)


LOCK = 0x77696E64
"""The advisory lock under which one process at a time changes the schema: `wind`."""


def migrations() -> list[Migration]:
    """Every step this version knows, in order."""
    return migrations_of(__package__)


async def is_current(session: Session, texts: Texts) -> bool:
    """Whether the schema is up to date; refuses one that a newer Windlass made incompatible."""
    if not await session.connection.fetchval("SELECT to_regclass($1)", in_schema("windlass.schema", texts.schema)):
        return False
    await check_schema(Db(session, texts))
    found = await session.connection.fetchval(in_schema("SELECT max(number) FROM windlass.schema", texts.schema))
    return (found or 0) >= migrations()[-1].number


async def check_schema(db: Db) -> None:
    """Refuse a schema that a newer Windlass made incompatible."""
    newer = await db.rows("newer_steps", {"newest": migrations()[-1].number})
    check_newer(f"the schema {db.schema}", [(name, breaking) for name, breaking in newer])


async def migrate(
    session: Session, texts: Texts, frame: Frame = Session.transaction, obstacle: Obstacle | None = None
) -> list[str]:
    """Apply missing steps in one transaction, one process at a time."""
    return await with_locks(session, texts, frame, lambda: _apply(session, texts.schema), obstacle or Obstacle())


async def _apply(session: Session, schema: str) -> list[str]:
    await session.script(f"SELECT pg_advisory_xact_lock({LOCK}, hashtext('{schema}'))")
    await session.script(
        f'CREATE SCHEMA IF NOT EXISTS "{schema}";'
        f'CREATE TABLE IF NOT EXISTS "{schema}".schema (number integer PRIMARY KEY, name text NOT NULL,'
        " breaking boolean NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
    found = await session.connection.fetchval(f'SELECT coalesce(max(number), 0) FROM "{schema}".schema')
    missing = [step for step in migrations() if step.number > found]
    for step in missing:
        await session.script(in_schema(step.text, schema))
        await session.script(
            f'INSERT INTO "{schema}".schema (number, name, breaking) '
            f"VALUES ({step.number}, '{step.name}', {step.breaking})"
        )
    return [step.name for step in missing]
