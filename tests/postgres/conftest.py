"""A store on a database of the test's own, and that database without the store in between."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.clock import ManualClock
from tests.support.stores import STORES
from windlass.store.contract import Store


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty store."""
    opened = STORES["postgres"].open(tmp_path, clock)
    yield opened
    await opened.close()


@pytest.fixture
async def connection(store: Store) -> AsyncIterator[Any]:
    """A connection of the test's own to the same database."""
    opened = await asyncpg.connect(store.address)
    yield opened
    await opened.close()
