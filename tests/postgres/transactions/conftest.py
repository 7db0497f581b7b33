"""An app on a database of its own, and a caller of each kind with a connection to it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.transactions import alchemists, drivers
from tests.postgres.transactions.callers import Caller
from tests.support.parts import in_part
from tests.support.stores import postgres_url as migrated_url
from windlass import App

CALLERS: dict[str, Callable[[], Caller]] = {
    "psycopg": drivers.Psycopg,
    "psycopg-async": drivers.PsycopgAsync,
    "psycopg2": drivers.Psycopg2,
    "asyncpg": drivers.Asyncpg,
    "asyncpg-pool": drivers.AsyncpgPool,
    "alchemy-psycopg": alchemists.AlchemyConnection,
    "alchemy-psycopg2": alchemists.AlchemyConnection2,
    "alchemy-session": alchemists.AlchemySession,
    "alchemy-async-asyncpg": alchemists.AlchemyAsync,
    "alchemy-async-psycopg": alchemists.AlchemyAsyncPsycopg,
    "alchemy-async-session-asyncpg": alchemists.AlchemyAsyncSession,
    "alchemy-async-session-psycopg": alchemists.AlchemyAsyncSessionPsycopg,
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with our tables and a table of the caller's."""
    made = migrated_url(tmp_path)
    with psycopg.connect(made) as connection:
        connection.execute("CREATE TABLE orders (number integer)")
    return made


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    """An app that has not spoken to its store yet."""
    made = App(url)
    made.queue("mail", max_attempts=7)
    yield made
    await made.aclose()


@pytest.fixture
async def watcher(url: str) -> AsyncIterator[App]:
    """An app that declares nothing, and so waits for no app that does."""
    made = App(url)
    yield made
    await made.aclose()


@pytest.fixture
def work(app: App) -> Any:
    """A task of a queue with settings of its own."""

    @app.task(queue="mail")
    def work(number: int, text: str = "") -> None: ...

    return work


DRIVERS = ("psycopg", "psycopg-async", "psycopg2", "asyncpg", "alchemy-session", "alchemy-async-asyncpg")
"""Of each driver one, and of SQLAlchemy one that blocks and one that does not."""


@pytest.fixture(params=in_part(CALLERS, DRIVERS))
def stranger(request: pytest.FixtureRequest) -> Caller:
    """A caller of each kind, not connected."""
    return CALLERS[request.param]()


@pytest.fixture
async def caller(stranger: Caller, url: str) -> AsyncIterator[Caller]:
    """A caller of each kind with a connection to the database of the app."""
    await stranger.open(url)
    yield stranger
    await stranger.close()
