"""A path for a database, and stores on it that are closed in the end."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from windlass.store.open import open_store
from windlass.store.sqlite.address import Driver, connection_class
from windlass.store.sqlite.connection.base import Connection
from windlass.store.sqlite.store import SqliteStore

Open = Callable[..., SqliteStore]
Connect = Callable[[], Connection]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database of this test will be."""
    return tmp_path / "jobs.db"


@pytest.fixture(params=list(Driver))
def driver(request: pytest.FixtureRequest) -> Driver:
    """The library that opens the database."""
    return Driver(request.param)


@pytest.fixture
def connects(path: Path, driver: Driver) -> Connect:
    """Another program's connection to it: through the same library, because it is in the same process."""
    return lambda: connection_class(driver)(path, synchronous="NORMAL", writes=True)


@pytest.fixture
async def opens(path: Path, driver: Driver) -> AsyncIterator[Open]:
    """Open the database, as often as wanted, with the options of `open_store`."""
    opened: list[SqliteStore] = []

    def open_one(query: str = "?durability=relaxed", **options: Any) -> SqliteStore:
        query += f"{'&' if query else '?'}driver={driver}"
        store = open_store(f"sqlite:///{path}{query}", **options)
        assert isinstance(store, SqliteStore)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()
