"""Schemas on a YugabyteDB that runs already: made once, and emptied for each test, because DDL is slow there."""

import asyncio
import functools
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg

from tests.support.servers.folder import at_end
from windlass.store.open import open_store
from windlass.store.postgres.connection.address import parse_address
from windlass.store.postgres.connection.trouble import is_conflict

VARIABLE = "WINDLASS_TEST_YUGABYTE"
"""The address of the cluster: yugabyte://…, or for a try of these tests postgresql://…?profile=yugabyte."""
MAX_TRIES = 20
_KEPT = ("schema", "identity")
"""Tables that say what the others are."""


def is_named() -> bool:
    return bool(os.environ.get(VARIABLE))


def has_hints() -> bool:
    """Whether other processes are told at once: only if its address says so."""
    url = os.environ[VARIABLE]
    return parse_address(url, url).notify


def named_yugabyte_place(folder: Path) -> str:
    """The address of what belongs to a test's folder; it is empty at first."""
    return _schemas().of(folder.resolve())


def drop_named_yugabyte_places(folder: Path) -> None:
    """A test is over: its schema is for another."""
    if _schemas.cache_info().currsize:
        _schemas().give_back(folder.resolve())


class Schemas:
    """Those of this run, by folder, and those that are free."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._run = secrets.token_hex(4)
        self._of: dict[Path, str] = {}
        self._free: list[str] = []
        self._made: list[str] = []
        self._first_steps: list[tuple[Any, ...]] = []
        """Of a new schema: one that a test took further is not for another."""
        self._first: dict[str, list[tuple[Any, ...]]] = {}
        """The rows of a new schema, by table."""
        self._connection = psycopg.connect(parse_address(url, url).dsn, autocommit=True)

    def of(self, folder: Path) -> str:
        if folder not in self._of:
            self._of[folder] = self._free.pop() if self._free else self._make()
            self._empty(self._of[folder])
        return self._address(self._of[folder])

    def give_back(self, folder: Path) -> None:
        for each in [each for each in self._of if each.is_relative_to(folder)]:
            name = self._of.pop(each)
            if self._steps(name) == self._first_steps:
                self._free.append(name)

    def close(self) -> None:
        for name in self._made:
            self._execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        self._connection.close()

    def _address(self, name: str) -> str:
        return f"{self._url}{'&' if '?' in self._url else '?'}schema={name}"

    def _make(self) -> str:
        name = f"windlass_test_{self._run}_{len(self._made)}"
        self._made.append(name)

        async def migrate() -> None:
            store = open_store(self._address(name))
            await store.migrate()
            await store.close()

        with ThreadPoolExecutor() as pool:  # a test may have a loop running here
            pool.submit(asyncio.run, migrate()).result()
        self._first_steps = self._steps(name)
        self._first = {table: self._execute(f"SELECT * FROM {name}.{table}") for table in self._tables(name)}
        return name

    def _empty(self, name: str) -> None:
        for table in self._tables(name):
            self._execute(f"DELETE FROM {name}.{table}")
            for row in self._first.get(table, []):
                places = ", ".join(["%s"] * len(row))
                self._execute(f"INSERT INTO {name}.{table} VALUES ({places})", *row)

    def _steps(self, name: str) -> list[tuple[Any, ...]]:
        return self._execute(f"SELECT number, name FROM {name}.schema ORDER BY number")

    def _tables(self, name: str) -> list[str]:
        found = self._execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", name)
        return sorted(table for (table,) in found if table not in _KEPT)

    def _execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute, again after a conflict: processes of the previous test may still end there."""
        for _ in range(MAX_TRIES - 1):
            try:
                return self._executed(statement, *values)
            except psycopg.Error as error:
                if not is_conflict(error):
                    raise
        return self._executed(statement, *values)

    def _executed(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


@functools.cache
def _schemas() -> Schemas:
    schemas = Schemas(os.environ[VARIABLE])
    at_end(schemas.close)
    return schemas
