"""Callers with a connection or a session of SQLAlchemy, over each driver."""

from typing import Any

import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as aio

from tests.postgres.transactions.callers import Blocking, OnLoop

RETRIED = (sqlalchemy.exc.DBAPIError,)


def _url(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


def _options(autocommit: bool) -> dict[str, Any]:
    return {"isolation_level": "AUTOCOMMIT"} if autocommit else {}


class AlchemyConnection(Blocking):
    """A Connection."""

    driver = "psycopg"
    retried = RETRIED
    _engine: Any

    def _open(self, url: str, autocommit: bool) -> None:
        self._engine = sqlalchemy.create_engine(_url(url, self.driver), **_options(autocommit))
        self.connection = self._engine.connect()

    def _execute(self, statement: str) -> None:
        self.connection.execute(sqlalchemy.text(statement))

    def _close(self) -> None:
        self.connection.close()
        self._engine.dispose()


class AlchemyConnection2(AlchemyConnection):
    """A Connection over psycopg2."""

    driver = "psycopg2"


class AlchemySession(AlchemyConnection):
    """A Session."""

    def _open(self, url: str, autocommit: bool) -> None:
        self._engine = sqlalchemy.create_engine(_url(url, self.driver), **_options(autocommit))
        self.connection = orm.Session(self._engine)


class AlchemyAsync(OnLoop):
    """An AsyncConnection."""

    driver = "asyncpg"
    retried = RETRIED
    _engine: Any

    async def open(self, url: str, *, autocommit: bool = False) -> None:
        self._engine = aio.create_async_engine(_url(url, self.driver), **_options(autocommit))
        self.connection = await self._engine.connect()

    async def execute(self, statement: str) -> None:
        await self.connection.execute(sqlalchemy.text(statement))

    async def close(self) -> None:
        await self.connection.close()
        await self._engine.dispose()


class AlchemyAsyncPsycopg(AlchemyAsync):
    """An AsyncConnection over psycopg 3."""

    driver = "psycopg"


class AlchemyAsyncSession(AlchemyAsync):
    """An AsyncSession."""

    async def open(self, url: str, *, autocommit: bool = False) -> None:
        self._engine = aio.create_async_engine(_url(url, self.driver), **_options(autocommit))
        self.connection = aio.AsyncSession(self._engine)


class AlchemyAsyncSessionPsycopg(AlchemyAsyncSession):
    """An AsyncSession over psycopg 3."""

    driver = "psycopg"
