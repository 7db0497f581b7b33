"""The database as a verb sees it: statements by name, the clocks and the liveness locks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.clock import Clock
from windlass.store.sql.session import NONE
from windlass.store.sql.statements import statements_of
from windlass.store.sqlite.connection.base import Statements, Values
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks

_TEXT_COLUMNS = (
    *("payload", "reason", "worker", "idempotency_key", "concurrency_key", "tenant"),
    *("parent", "flow", "error", "attempts", "tags", "meta"),
)
UNREADABLE_PREFIX = "not UTF-8: "


_encode = msgspec.json.Encoder().encode
_SPELLINGS = (
    (re.compile(r"::[a-z]+(\[\])?"), ""),
    (re.compile(r"= ANY\((:\w+)\)"), r"IN (SELECT value FROM json_each(\1))"),
    (re.compile(r"\bwindlass\."), "windlass_"),
    (re.compile(r' COLLATE "C"| FOR UPDATE'), ""),
    (re.compile(r"\bstrpos\("), "instr("),
)
"""Rewrites a shared statement from PostgreSQL's spelling; SQLite has one writer, and compares text by bytes."""


@cache
def translated(text: str) -> str:
    """A shared statement as SQLite spells it."""
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text


@cache
def load_statements() -> dict[str, str]:
    """The statements of this store by name; called when a store is opened."""
    return {name: translated(text) for name, text in statements_of("sqlite").items()}


def sql(name: str) -> str:
    """The text of a statement."""
    return load_statements()[name]


class UnreadableText(Exception):
    """A statement found bytes where text should be."""


class Db:
    """One verb's view of the database, inside an open transaction."""

    def __init__(self, connection: Statements, clock: Clock, liveness_locks: LivenessLocks) -> None:
        self._connection = connection
        self.clock = clock
        self.liveness_locks = liveness_locks

    @property
    def now(self) -> Micros:
        """The wall clock."""
        return self.clock.wall()

    def rows(self, name: str, values: Values = ()) -> list[Any]:
        """The rows of a named statement."""
        return self._connection.rows(sql(name), values)

    def text(self, name: str, values: Values) -> str | None:
        """The one value of a named statement that returns JSON; raises UnreadableText, as JSON cannot hold bytes."""
        try:
            found: str | None = self.rows(name, values)[0][0]
        except Exception as error:
            if "cannot hold BLOB" in str(error):
                raise UnreadableText from error
            raise
        return found

    def json(self, name: str, values: Values) -> list[Any]:
        """The JSON array that a named statement returns as its one value; NULL stands for an empty one."""
        found = self.text(name, values)
        return msgspec.json.decode(found) if found else []

    def run(self, name: str, values: Values = ()) -> int:
        """Execute a named statement; returns the number of changed rows."""
        return self._connection.run(sql(name), values)

    def run_many(self, name: str, values: Sequence[Values]) -> None:
        """Execute a named statement once per set of values."""
        self._connection.run_many(sql(name), values)

    def select(self, text: str, values: Values = ()) -> list[Any]:
        """The rows of a statement that is built from constants."""
        return self._connection.rows(text, values)

    def savepoint(self, name: str) -> None:
        """Begin a part that can be rolled back alone."""
        self._connection.run(f"SAVEPOINT {name}")

    def roll_back(self, name: str) -> None:
        """Undo everything since the savepoint."""
        self._connection.run(f"ROLLBACK TO {name}")
        self.release(name)

    def release(self, name: str) -> None:
        """Keep everything since the savepoint."""
        self._connection.run(f"RELEASE {name}")

    def add_history_count(self, queue: str, status: Status | str, change: int) -> None:
        """Add to the stored number of a queue's finished jobs."""
        self.run("add_history_count", {"queue": queue, "status": str(status), "change": change})


class SharedDb:
    """A Db as the session of the verbs in `store/sql`; its coroutines never suspend."""

    dead_history = "windlass.history"
    is_failed = "status = 'failed'"
    buckets = 1

    def __init__(self, db: Db) -> None:
        self.db = db

    async def now(self) -> Micros:
        return self.db.now

    async def rows(self, name: str, values: Mapping[str, Any] = NONE) -> list[Any]:
        return self.db.rows(name, self._bound(values))

    async def run(self, name: str, values: Mapping[str, Any] = NONE) -> int:
        return self.db.run(name, self._bound(values))

    async def select(self, text: str, values: Mapping[str, Any] = NONE) -> list[Any]:
        return self.db.select(translated(text), self._bound(values))

    def by_id(self, select: str, order: str) -> str:
        """The select unchanged: there are no buckets, and an index has the order."""
        return select

    def wall_time(self, expires_at: Micros) -> Micros:
        """The end of a lease, which is timed by the boot clock, by the wall clock."""
        return self.db.now + expires_at - self.db.clock.since_boot()

    def _bound(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        bound = {name: array(value) if isinstance(value, list) else value for name, value in values.items()}
        return {"now": self.db.now, **bound}


def array(values: Iterable[Any]) -> str:
    """Many values as one parameter, for json_each."""
    return _encode(values if isinstance(values, list) else list(values)).decode()


def repair_text(db: Db) -> int:
    """Escape the bytes of text that is not UTF-8; returns how many values were rewritten.

    Only another program can have stored such text, and every statement that reads it fails. A repaired payload is no
    longer JSON.
    """
    tables = ("windlass_jobs", "windlass_history")
    return sum(_repair(db, table, column) for table in tables for column in _TEXT_COLUMNS)


def _repair(db: Db, table: str, column: str) -> int:
    unreadable = []
    for id_, kind, stored in db.select(
        f"SELECT id, typeof({column}), CAST({column} AS BLOB) FROM {table} WHERE typeof({column}) = 'blob' "
        f"OR typeof({column}) = 'text' AND {column} GLOB :not_ascii",
        {"not_ascii": "*[^\x01-\x7f]*"},
    ):
        if kind == "blob" or not _is_utf8(stored):
            unreadable.append({"id": id_, "text": UNREADABLE_PREFIX + stored.decode("utf-8", "backslashreplace")})
    for values in unreadable:
        db.select(f"UPDATE {table} SET {column} = :text WHERE id = :id", values)
    return len(unreadable)


def _is_utf8(stored: bytes) -> bool:
    try:
        stored.decode()
    except UnicodeDecodeError:
        return False
    return True
