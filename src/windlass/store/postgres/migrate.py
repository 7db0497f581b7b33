"""Numbered, forward-only migrations, applied on first use and by `windlass migrate`.

Each says whether it breaks the code before it. Code that finds steps it does not know goes on as long as none of them
does: in a rolling deploy old workers run beside new ones.
"""

from windlass.errors import SchemaMismatch
from windlass.store.migrations import Migration, migrations_of
from windlass.store.postgres.db import Texts
from windlass.store.postgres.query import in_schema
from windlass.store.postgres.session import Frame, Session

LOCK = 0x77696E64
"""The name of the lock under which one process at a time changes the schema: `wind`."""


def migrations() -> list[Migration]:
    """Every step this version knows, in order."""
    return migrations_of(__package__)


async def is_current(session: Session, texts: Texts) -> bool:
    """Whether nothing is missing; refuses a schema that a newer Windlass has changed too much."""
    if not await session.connection.fetchval("SELECT to_regclass($1)", in_schema("windlass.schema", texts.schema)):
        return False
    applied = await session.connection.fetch(
        in_schema("SELECT number, name, breaking FROM windlass.schema", texts.schema)
    )
    newest = migrations()[-1].number
    for number, name, breaking in applied:
        if number > newest and breaking:
            raise SchemaMismatch(
                f"the schema {texts.schema} has step {name}, which this version of Windlass cannot work with: "
                "upgrade Windlass (pip install --upgrade windlass)"
            )
    return max((row[0] for row in applied), default=0) >= newest


async def migrate(session: Session, texts: Texts, frame: Frame = Session.transaction) -> list[str]:
    """Apply what is missing, in one transaction: all steps or none, and never two processes at once."""
    schema = texts.schema
    async with frame(session):
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
