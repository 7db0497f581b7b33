"""A look into the tables themselves, past the contract: what a person with a shell sees and does."""

import contextlib
import fcntl
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg

from tests.support.inside_redis import Redis
from windlass.store.postgres.connection.address import parse_address

NOT_UTF8 = b'{"a": "\xff"}'
TRIES = 20


class Inside(Protocol):
    """What tests ask the tables of a store for."""

    def leases(self) -> list[str]:
        """The runners that have one."""

    def edit(self, id_: str, column: str, value: Any) -> None:
        """Change a column of a live job."""

    def payload(self, id_: str) -> str:
        """Of a live job, as it is stored."""

    def is_held_up(self) -> bool:
        """Whether a process is in the middle of writing: to stop it would block all others."""

    def is_left_behind(self) -> bool:
        """Whether a worker that has ended left anything."""


class Sqlite:
    """A file, and what stands beside it."""

    def __init__(self, file: Path) -> None:
        self._file = file.resolve()

    def leases(self) -> list[str]:
        return [row[0] for row in self._rows("SELECT runner FROM windlass_leases")]

    def payload(self, id_: str) -> str:
        return str(self._rows("SELECT payload FROM windlass_jobs WHERE id = ?", id_)[0][0])

    def edit(self, id_: str, column: str, value: Any) -> None:
        database = apsw.Connection(str(self._file))
        as_text = "CAST(? AS TEXT)" if value is NOT_UTF8 else "?"
        database.execute(f"UPDATE windlass_jobs SET {column} = {as_text} WHERE id = ?", (value, id_))
        database.close()

    def is_held_up(self) -> bool:
        return any(_locked(self._file.with_name(self._file.name + end)) for end in ("-turn", "-writers"))

    def is_left_behind(self) -> bool:
        return any(self._file.with_name(f"{self._file.name}-live").iterdir())

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        database = apsw.Connection(str(self._file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return database.execute(statement, values).fetchall()
        finally:
            database.close()


class Postgres:
    """A database; statements that fail because of a conflict are repeated."""

    def __init__(self, address: str) -> None:
        parsed = parse_address(address, address)
        self._dsn, self._schema = parsed.dsn, parsed.schema

    def leases(self) -> list[str]:
        return [row[0] for row in self._execute(f"SELECT runner FROM {self._schema}.leases")]

    def payload(self, id_: str) -> str:
        return str(self._execute(f"SELECT payload FROM {self._schema}.jobs WHERE id = %s", id_)[0][0])

    def edit(self, id_: str, column: str, value: Any) -> None:
        # The server keeps no text that is none: the nearest to it.
        text = (
            value.decode("utf-8", "backslashreplace").replace("\x00", "") if isinstance(value, bytes) else str(value)
        )
        self._execute(f"UPDATE {self._schema}.jobs SET {column} = %s WHERE id = %s", text, id_)

    def is_held_up(self) -> bool:
        ours = "datname = current_database() AND starts_with(application_name, 'windlass')"
        return bool(self._execute(f"SELECT 1 FROM pg_stat_activity WHERE {ours} AND state <> 'idle'"))

    def is_left_behind(self) -> bool:
        return False

    def _execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        for _ in range(TRIES):
            with (
                contextlib.suppress(psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected),
                psycopg.connect(self._dsn, autocommit=True) as connection,
            ):
                cursor = connection.execute(statement.encode(), values or None)
                return cursor.fetchall() if cursor.description else []
        raise AssertionError(f"failed {TRIES} times: {statement}")


def inside(address: str, folder: Path) -> Inside:
    """Of the store of a test, which is in its folder if it is a file."""
    if address.startswith("redis:"):
        return Redis(address)
    return Sqlite(folder / "jobs.db") if address.startswith("sqlite:") else Postgres(address)


def _locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
