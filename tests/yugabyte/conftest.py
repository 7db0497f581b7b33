"""The YugabyteDB profile on the PostgreSQL of the test run: a store with a clock of ours, and its database."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.clock import ManualClock
from tests.support.servers.places import postgres_place
from tests.support.stores import STORES, yugabyte_url
from windlass.store.contract import Store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return yugabyte_url(tmp_path)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """Empty, with four buckets."""
    opened = STORES["yugabyte"].open(tmp_path, clock)
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
async def connection(store: Store, tmp_path: Path) -> AsyncIterator[Any]:
    """A connection of the test's own to the same database."""
    opened = await asyncpg.connect(postgres_place(tmp_path))
    yield opened
    await opened.close()
