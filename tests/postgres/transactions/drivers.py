"""Callers with a connection of a driver: psycopg 3, psycopg2, asyncpg."""

from typing import Any

import asyncpg
import psycopg
import psycopg2

from tests.postgres.transactions.callers import Blocking, OnLoop


class Psycopg(Blocking):
    """psycopg 3."""

    retried = (psycopg.errors.SerializationFailure,)

    def _open(self, url: str, autocommit: bool) -> None:
        self.connection = psycopg.connect(url, autocommit=autocommit)

    def _execute(self, statement: str) -> None:
        self.connection.execute(statement)


class Psycopg2(Blocking):
    """psycopg2."""

    retried = (psycopg2.errors.SerializationFailure,)

    def _open(self, url: str, autocommit: bool) -> None:
        self.connection = psycopg2.connect(url)
        self.connection.autocommit = autocommit

    def _execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)


class PsycopgAsync(OnLoop):
    """psycopg 3, asynchronous."""

    retried = (psycopg.errors.SerializationFailure,)

    async def open(self, url: str, *, autocommit: bool = False) -> None:
        self.connection = await psycopg.AsyncConnection.connect(url, autocommit=autocommit)

    async def execute(self, statement: str) -> None:
        await self.connection.execute(statement)

    async def close(self) -> None:
        await self.connection.close()


class Asyncpg(OnLoop):
    """asyncpg, which begins nothing by itself."""

    retried = (asyncpg.SerializationError,)
    _transaction: Any = None

    async def open(self, url: str, *, autocommit: bool = False) -> None:
        self.connection = await asyncpg.connect(url)
        if not autocommit:
            await self._begin()

    async def execute(self, statement: str) -> None:
        await self.connection.execute(statement)

    async def commit(self) -> None:
        await self._transaction.commit()
        await self._begin()

    async def rollback(self) -> None:
        await self._transaction.rollback()
        await self._begin()

    async def close(self) -> None:
        await self.connection.close()

    async def _begin(self) -> None:
        self._transaction = self.connection.transaction()
        await self._transaction.start()


class AsyncpgPool(Asyncpg):
    """asyncpg, a connection that a pool has lent."""

    _pool: Any

    async def open(self, url: str, *, autocommit: bool = False) -> None:
        self._pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        self.connection = await self._pool.acquire()
        if not autocommit:
            await self._begin()

    async def close(self) -> None:
        self._pool.terminate()
