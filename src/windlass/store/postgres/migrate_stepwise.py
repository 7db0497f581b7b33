"""Migrations of a profile whose schema cannot be changed in a transaction: statement by statement, each repeatable.

A step is recorded after its last statement. If a process dies in between, the next one completes the tables. Two
processes at the same time do the same work, and repeat statements that collide.
"""

import asyncio
import random
import re
from collections.abc import Iterator
from functools import cache

import asyncpg

from windlass.store.migrations import Migration, migrations_of
from windlass.store.postgres.connection.db import Texts, in_schema
from windlass.store.postgres.connection.requirements import is_cluster
from windlass.store.postgres.connection.session import Frame, Session
from windlass.store.postgres.connection.trouble import is_conflict, state_of

MAX_TRIES = 30
PAUSE_SECONDS = 0.1
_COLLISIONS = ("23505", "42P07", "42710", "42723", "42P06", "XX000")
"""Errors of statements that create the same object at the same time: unique, duplicate, changed concurrently."""
_ORDER = re.compile(r" (?:ASC|HASH)\b")
_GROUP = re.compile(r"\(\(([^()]*)\) HASH")
_TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE windlass\.(\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMNS_OF = re.compile(r"COLUMNS OF (\w+)(?: AFTER (\w+))?")
_SPLIT = re.compile(r"\s+SPLIT AT BUCKETS")
_PLAIN = re.compile(r"/\*plain (.*?) \*/")
_INDEX = re.compile(r"^CREATE (UNIQUE )?INDEX\b")
_BODY = re.compile(r"\$\$.*?\$\$", re.DOTALL)


async def apply_one_by_one(session: Session, texts: Texts, frame: Frame, buckets: int) -> list[str]:
    """Apply missing steps; returns their names."""
    schema, cluster = texts.schema, is_cluster(await session.connection.fetchval("SELECT version()"))
    for statement in schema_table(schema):
        await run_repeatable(session, statement)
    found = await session.connection.fetchval(f'SELECT coalesce(max(number), 0) FROM "{schema}".schema')
    missing = [step for step in migrations_of(__package__, texts.profile.name) if step.number > found]
    for step in missing:
        for statement in statements_in(step.text, buckets, cluster=cluster):
            await run_repeatable(session, in_schema(statement, schema))
        async with frame(session):
            await session.script(f"{record_of(step, schema)} ON CONFLICT (number) DO NOTHING")
    return [step.name for step in missing]


async def run_repeatable(session: Session, statement: str) -> None:
    """Run a repeatable statement, again while it collides with that of another process."""
    for attempt in range(MAX_TRIES):
        try:
            await session.script(statement)
        except asyncpg.PostgresError as error:
            if attempt == MAX_TRIES - 1 or not (state_of(error) in _COLLISIONS or is_conflict(error)):
                raise
        else:
            return
        await asyncio.sleep(PAUSE_SECONDS * random.random())


def statements_in(text: str, buckets: int, *, cluster: bool) -> Iterator[str]:
    """The statements of a step, for a cluster or, without the phrases for clusters, for plain PostgreSQL."""
    text = _COLUMNS_OF.sub(_columns_of, text)
    bodies: list[str] = []

    def take(found: re.Match[str]) -> str:
        bodies.append(found[0])
        return f"$${len(bodies) - 1}$$"

    lines = [
        line for line in text.replace(":buckets", str(buckets)).splitlines() if not line.lstrip().startswith("--")
    ]
    without = _BODY.sub(take, "\n".join(lines))
    for part in without.split(";"):
        if statement := part.strip():
            whole = in_cluster(statement, buckets) if cluster else in_plain(statement)
            yield re.sub(r"\$\$(\d+)\$\$", lambda found: bodies[int(found[1])], whole)


def _columns_of(found: re.Match[str]) -> str:
    """The columns of a table of the schema without a profile: all of them, or those after a given one."""
    columns = _tables()[found[1]]
    first = 1 + [column.split()[0] for column in columns].index(found[2]) if found[2] else 0
    return ", ".join(columns[first:])


@cache
def _tables() -> dict[str, list[str]]:
    """The column definitions of each table of the schema without a profile, without primary keys."""
    text = "\n".join(step.text for step in migrations_of(__package__))
    return {
        table: [
            line.replace(" PRIMARY KEY", "").rstrip(",")
            for line in map(str.strip, body.splitlines())
            if line and not line.startswith(("--", "PRIMARY KEY"))
        ]
        for table, body in _TABLE.findall(text)
    }


def in_cluster(statement: str, buckets: int) -> str:
    """The statement with a split point between each two buckets, and with indexes that are not created online.

    A cluster creates an index online in steps: if that is interrupted, the index exists, but stays invalid.
    """
    points = ", ".join(f"({bucket})" for bucket in range(1, buckets))
    split = _SPLIT.sub(f" SPLIT AT VALUES ({points})" if points else "", _PLAIN.sub("", statement).rstrip())
    return _INDEX.sub(r"CREATE \1INDEX NONCONCURRENTLY", split)


def in_plain(statement: str) -> str:
    """The statement without the phrases for a cluster, and with those for a plain server."""
    return _ORDER.sub("", _GROUP.sub(r"(\1", _SPLIT.sub("", _PLAIN.sub(r"\1", statement))))


def schema_table(schema: str) -> tuple[str, str]:
    """The statements that create the schema, and the table in which applied steps are recorded."""
    return (
        f'CREATE SCHEMA IF NOT EXISTS "{schema}"',
        f'CREATE TABLE IF NOT EXISTS "{schema}".schema (number integer PRIMARY KEY, name text NOT NULL,'
        " breaking boolean NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())",
    )


def record_of(step: Migration, schema: str) -> str:
    """The statement that records a step."""
    return (
        f'INSERT INTO "{schema}".schema (number, name, breaking) '
        f"VALUES ({step.number}, '{step.name}', {step.breaking})"
    )
