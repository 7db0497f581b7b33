"""Text that is none: only another program can have put it into the file, and no statement that meets it goes on.

So it is made readable, once, when it is met. What it stood in is marked by that: a payload is no JSON any more.
"""

from typing import Any

import msgspec

from windlass.store.sqlite.connection import Values
from windlass.store.sqlite.db import Db

_COLUMNS = (
    "payload",
    "reason",
    "worker",
    "idempotency_key",
    "concurrency_key",
    "tenant",
    "parent",
    "flow",
    "error",
    "attempts",
    "tags",
    "meta",
)
_TABLES = ("windlass_jobs", "windlass_history")
MARK = "not UTF-8: "


class NotText(Exception):
    """A statement met bytes where text should be."""


def json_of(db: Db, name: str, values: Values) -> list[Any]:
    """What a statement gives as one row of JSON: an array, and an empty one if it gives NULL."""
    found = text_of(db, name, values)
    return msgspec.json.decode(found) if found else []


def text_of(db: Db, name: str, values: Values) -> str | None:
    """The one value of a statement that makes JSON, which cannot hold bytes."""
    try:
        found: str | None = db.rows(name, values)[0][0]
    except Exception as error:
        if "cannot hold BLOB" in str(error):
            raise NotText from error
        raise
    return found


def mend(db: Db) -> int:
    """Rewrite such text with its strange bytes spelt out; how many values there were."""
    return sum(_mend(db, table, column) for table in _TABLES for column in _COLUMNS)


def _mend(db: Db, table: str, column: str) -> int:
    strange = []
    for id_, kind, stored in db.select(
        f"SELECT id, typeof({column}), CAST({column} AS BLOB) FROM {table} WHERE typeof({column}) = 'blob' "
        f"OR typeof({column}) = 'text' AND {column} GLOB :strange",
        {"strange": "*[^\x01-\x7f]*"},
    ):
        if kind == "blob" or not _is_text(stored):
            strange.append({"id": id_, "text": MARK + stored.decode("utf-8", "backslashreplace")})
    for values in strange:
        db.select(f"UPDATE {table} SET {column} = :text WHERE id = :id", values)
    return len(strange)


def _is_text(stored: bytes) -> bool:
    try:
        stored.decode()
    except UnicodeDecodeError:
        return False
    return True
