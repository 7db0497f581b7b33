"""A PostgreSQL store with a clock of ours, its database without it, and somebody who acts like another process."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.servers.places import postgres_place
from tests.support.stores import STORES
from windlass.store.contract import Store


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """Empty."""
    opened = STORES["postgres"].open(tmp_path, clock)
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
async def other(store: Store, tmp_path: Path) -> AsyncIterator[Other]:
    """Somebody else in the same database, in a transaction as soon as he says a word."""
    connection = await psycopg.AsyncConnection.connect(postgres_place(tmp_path))
    watcher = await psycopg.AsyncConnection.connect(postgres_place(tmp_path), autocommit=True)
    yield Other(connection, watcher)
    await connection.close()
    await watcher.close()


@pytest.fixture
async def connection(store: Store) -> AsyncIterator[Any]:
    """A connection of the test's own to the same database."""
    opened = await asyncpg.connect(store.address)
    yield opened
    await opened.close()
