"""What a newer Windlass does to a store: one more step of its tables or keys, additive or breaking."""

import asyncio
import contextlib
from functools import partial
from typing import Any

import psycopg

from windlass.store.contract import Store
from windlass.store.postgres.connection.address import parse_address
from windlass.store.postgres.store import PostgresStore
from windlass.store.redis.connection.access import Access
from windlass.store.redis.records.migrate import STEPS, VERSION, Step, bring_up
from windlass.store.redis.store import RedisStore
from windlass.store.sqlite.connection.base import Connection
from windlass.store.sqlite.store import SqliteStore

NUMBER, NAME = 9000, "9000_tomorrow"
_POSTGRES_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
_SQLITE_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'windlass_*'"


async def take_step(store: Store, *, breaking: bool) -> None:
    """Every table gets a column, and there is a new table; on Redis a field that this version does not know."""
    await store.migrate()
    match store:
        case SqliteStore():
            await store._threads._writer.run(partial(_change_sqlite, breaking=breaking))
        case PostgresStore():
            found = parse_address(store.address, "")
            await asyncio.to_thread(_change_postgres, found.dsn, found.schema, breaking=breaking)
        case RedisStore():
            await bring_up(store._access, VERSION, (*STEPS, Step(NAME, _change_redis, breaking)))
        case _:
            raise NotImplementedError(type(store))


def _change_sqlite(connection: Connection, *, breaking: bool) -> None:
    for (table,) in connection.rows(_SQLITE_TABLES):
        connection.run(f"ALTER TABLE {table} ADD COLUMN of_tomorrow TEXT DEFAULT 'x'")
    connection.run("CREATE TABLE windlass_tomorrow (id INTEGER)")
    connection.run(
        "INSERT INTO windlass_schema (number, name, breaking) VALUES (?, ?, ?)", (NUMBER, NAME, int(breaking))
    )


def _change_postgres(url: str, schema: str, *, breaking: bool) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for (table,) in _repeated(connection, _POSTGRES_TABLES.format(schema=schema)).fetchall():
            _repeated(connection, f"ALTER TABLE {schema}.{table} ADD COLUMN of_tomorrow text DEFAULT 'x'")
        _repeated(connection, f"CREATE TABLE {schema}.tomorrow (id integer)")
        step = f"({NUMBER}, '{NAME}', {breaking})"
        _repeated(connection, f"INSERT INTO {schema}.schema (number, name, breaking) VALUES {step}")


def _repeated(connection: "psycopg.Connection[Any]", statement: str) -> "psycopg.Cursor[Any]":
    """Run a statement until there is no conflict: a store may be where one of ten statements fails."""
    while True:
        with contextlib.suppress(psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            return connection.execute(statement.encode())


async def _change_redis(access: Access) -> None:
    await access.command("HSET", "meta", "of_tomorrow", "x")
