"""A PostgreSQL store with a clock of ours, its database without it, and a connection like another process."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.servers.address import Address
from tests.support.servers.places import postgres_place
from tests.support.stores import STORES, postgres_url
from windlass.store.contract import Store
from windlass.store.postgres.connection import session


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """Empty."""
    opened = STORES["postgres"].open(tmp_path, clock)
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
async def other(store: Store, tmp_path: Path) -> AsyncIterator[Other]:
    """Another session in the same database, in a transaction from its first statement on."""
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


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


@pytest.fixture
def server(url: str) -> Address:
    """The test's own way to the same database."""
    return Address(url)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not look by itself whether its client is gone: what ends a backend is the cancel request."""
    monkeypatch.setitem(session.SETTINGS, "client_connection_check_interval", "0")
