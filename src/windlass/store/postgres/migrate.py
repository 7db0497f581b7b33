"""Numbered, forward-only migrations, applied on first use and by `windlass migrate`.

Each step says whether it breaks older code. A process that finds unknown steps continues unless one of them is
breaking: in a rolling deploy old workers run beside new ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import asyncpg

from windlass.errors import SchemaMismatch, StoreUnavailable
from windlass.store.migrations import Migration, check_newer, migrations_of
from windlass.store.postgres.connection.db import Db, Texts, in_schema
from windlass.store.postgres.connection.profile import DEFAULT_BUCKETS, PLAIN, Profile
from windlass.store.postgres.connection.session import Frame, Session
from windlass.store.postgres.migrate_stepwise import apply_one_by_one, record_of, schema_table

T = TypeVar("T")

LOCK_SECONDS = 2.0
"""How long a statement may wait for a lock."""
PAUSE_SECONDS = 1.0
"""Pause between two tries, so that others can proceed."""
PATIENCE_SECONDS = 60.0
"""Then the error names the processes that hold the locks. Callers with a deadline give up earlier."""
SHOWN = 3


class Obstacle:
    """What blocks a migration, as far as is known."""

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
    """Run work in a transaction with a short lock_timeout, again until it gets all locks."""
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
                raise StoreUnavailable(f"{obstacle.text}; end that transaction, and try again") from error
        else:
            obstacle.text = ""
            return done
        await asyncio.sleep(PAUSE_SECONDS)


LOCK = 0x77696E64
"""The advisory lock under which one process at a time changes the schema: `wind`."""


def migrations(profile: Profile = PLAIN) -> list[Migration]:
    """Every step that this version knows, in order."""
    return migrations_of(__package__, profile.name)


async def is_current(session: Session, texts: Texts) -> bool:
    """Whether all steps are applied; raises SchemaMismatch if an unknown breaking step is."""
    if not await session.connection.fetchval("SELECT to_regclass($1)", in_schema("windlass.schema", texts.schema)):
        return False
    await check_schema(Db(session, texts))
    steps = migrations(texts.profile)
    rows = await session.connection.fetch(in_schema("SELECT number, name FROM windlass.schema", texts.schema))
    check_profile(texts.schema, {row["number"]: row["name"] for row in rows}, steps)
    return max((row["number"] for row in rows), default=0) >= steps[-1].number


def check_profile(schema: str, applied: Mapping[int, str], steps: Sequence[Migration]) -> None:
    """Raise SchemaMismatch if the tables are those of another profile."""
    first = applied.get(steps[0].number, steps[0].name)
    if first != steps[0].name:
        raise SchemaMismatch(
            f"the schema {schema} begins with step {first}, not {steps[0].name}: with and without ?profile=yugabyte "
            "the tables differ; use another schema, or the address it was made with"
        )


async def buckets_of(session: Session, texts: Texts) -> int:
    """How many buckets the tables have; a schema without them has one."""
    if not texts.profile.name:
        return 1
    number = await session.connection.fetchval(in_schema("SELECT count(*) FROM windlass.due_watermark", texts.schema))
    return int(number)


async def check_schema(db: Db) -> None:
    """Raise SchemaMismatch if an unknown breaking step is applied."""
    newer = await db.rows("newer_steps", {"newest": migrations(db.profile)[-1].number})
    check_newer(f"the schema {db.schema}", [(name, breaking) for name, breaking in newer])


async def migrate(
    session: Session,
    texts: Texts,
    frame: Frame = Session.transaction,
    obstacle: Obstacle | None = None,
    buckets: int | None = None,
) -> list[str]:
    """Apply the missing steps in one transaction, one process at a time; or, in a profile, statement by statement.

    Returns the names of the steps.
    """
    if not texts.profile.advisory_locks:
        return await apply_one_by_one(session, texts, frame, buckets or DEFAULT_BUCKETS)
    return await with_locks(session, texts, frame, lambda: _apply(session, texts.schema), obstacle or Obstacle())


async def _apply(session: Session, schema: str) -> list[str]:
    await session.script(f"SELECT pg_advisory_xact_lock({LOCK}, hashtext('{schema}'))")
    for statement in schema_table(schema):
        await session.script(statement)
    found = await session.connection.fetchval(f'SELECT coalesce(max(number), 0) FROM "{schema}".schema')
    missing = [step for step in migrations() if step.number > found]
    for step in missing:
        await session.script(in_schema(step.text, schema))
        await session.script(record_of(step, schema))
    return [step.name for step in missing]
