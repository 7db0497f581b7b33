"""A PostgreSQL server that is there, ours or not: how to reach its databases."""

from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg


class Address(NamedTuple):
    """The address of one database, and through it of the others of that server."""

    url: str

    def dsn(self, database: str) -> str:
        """The address of another database of the server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))

    def connect(self) -> psycopg.Connection[Any]:
        """For statements that commit themselves."""
        return psycopg.connect(self.url, autocommit=True)

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """One statement on a connection of its own, and its rows. `%s` stands for a value."""
        with self.connect() as connection:
            return execute(connection, statement, *values)


def execute(connection: psycopg.Connection[Any], statement: str, *values: object) -> list[tuple[Any, ...]]:
    """One statement, and its rows if it has any."""
    cursor = connection.execute(statement.encode(), values or None)
    return cursor.fetchall() if cursor.description else []
