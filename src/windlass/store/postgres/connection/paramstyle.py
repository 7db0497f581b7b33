"""Statements on callers' drivers: parameter style, and rows as tuples."""

from collections.abc import Callable
from typing import Any

from windlass.store.postgres.connection.db import Statement, Values, named, numbered

_WHOLE = {"stream_results": False, "yield_per": None}
"""Overrides the caller's options: with them SQLAlchemy would use a server-side cursor, which only reads."""


class ByCursor:
    """Connections of psycopg 3, psycopg2 and Django: one cursor per statement."""

    prepare = staticmethod(named)

    def __init__(self, cursor: Callable[[], Any]) -> None:
        self._cursor = cursor

    async def rows(self, statement: Statement, values: Values) -> list[Any]:
        """All rows of a statement."""
        with self._cursor() as cursor:
            cursor.execute(statement.text, _by_name(statement, values))
            return [_as_text(row) for row in cursor.fetchall()]

    async def run(self, statement: Statement, values: Values) -> int:
        """Execute; how many rows it changed."""
        with self._cursor() as cursor:
            cursor.execute(statement.text, _by_name(statement, values))
            return int(cursor.rowcount)


class ByAsyncCursor:
    """Asynchronous connections of psycopg 3."""

    prepare = staticmethod(named)

    def __init__(self, cursor: Callable[[], Any]) -> None:
        self._cursor = cursor

    async def rows(self, statement: Statement, values: Values) -> list[Any]:
        """All rows of a statement."""
        async with self._cursor() as cursor:
            await cursor.execute(statement.text, _by_name(statement, values))
            return [_as_text(row) for row in await cursor.fetchall()]

    async def run(self, statement: Statement, values: Values) -> int:
        """Execute; how many rows it changed."""
        async with self._cursor() as cursor:
            await cursor.execute(statement.text, _by_name(statement, values))
            return int(cursor.rowcount)


class ByAsyncpg:
    """Connections of asyncpg; rows are plain records, whatever the caller's record class is."""

    prepare = staticmethod(numbered)

    def __init__(self, connection: Any, record: type) -> None:
        self._connection = connection
        self._record = record

    async def rows(self, statement: Statement, values: Values) -> list[Any]:
        """All rows of a statement."""
        found: list[Any] = await self._connection.fetch(
            statement.text, *_in_order(statement, values), record_class=self._record
        )
        return found

    async def run(self, statement: Statement, values: Values) -> int:
        """Execute; how many rows it changed."""
        tag: str = await self._connection.execute(statement.text, *_in_order(statement, values))
        count = tag.rpartition(" ")[2]
        return int(count) if count.isdecimal() else 0


class BySqlalchemy:
    """A Connection of SQLAlchemy: it raises its own errors, and its pool notices a lost connection."""

    def __init__(self, connection: Any, prepare: Callable[..., Statement]) -> None:
        self._connection = connection
        self.prepare = prepare

    async def rows(self, statement: Statement, values: Values) -> list[Any]:
        """All rows of a statement."""
        return list(self._execute(statement, values).all())

    async def run(self, statement: Statement, values: Values) -> int:
        """Execute; how many rows it changed."""
        return int(self._execute(statement, values).rowcount)

    def _execute(self, statement: Statement, values: Values) -> Any:
        parameters: Any = None
        if statement.names:
            by_name = self.prepare is named
            parameters = _by_name(statement, values) if by_name else tuple(_in_order(statement, values))
        return self._connection.exec_driver_sql(statement.text, parameters, execution_options=_WHOLE)


def _by_name(statement: Statement, values: Values) -> dict[str, Any]:
    return {name: values[name] for name in statement.names}


def _in_order(statement: Statement, values: Values) -> list[Any]:
    return [values[name] for name in statement.names]


def _as_text(value: Any) -> Any:
    """Decode text, which psycopg does not do if the client encoding is SQL_ASCII."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, tuple | list):
        return type(value)(map(_as_text, value))
    return value
