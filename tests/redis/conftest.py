"""Fixtures of the tests of the Redis store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.stores import STORES
from windlass.store.contract import Store


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty store."""
    opened = STORES["redis"].open(tmp_path, clock)
    yield opened
    await opened.close()
