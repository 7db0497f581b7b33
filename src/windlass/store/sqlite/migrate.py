"""Numbered, forward-only migrations, applied on first use and by `windlass migrate`.

Unknown steps are accepted unless one of them is breaking.
"""

import sqlite3
from collections.abc import Iterator

from windlass.store.migrations import Migration, check_newer, migrations_of
from windlass.store.sqlite.connection.base import Connection, Statements

_VERSIONS = """
CREATE TABLE IF NOT EXISTS windlass_schema (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    -- Whether older code stops working with this step; in a rolling deploy old workers run beside new ones.
    breaking   INTEGER NOT NULL DEFAULT 1
)
"""
_RECORD = "INSERT INTO windlass_schema (number, name, breaking) VALUES (?, ?, ?)"
_NEWER = "SELECT name, breaking FROM windlass_schema WHERE number > :newest ORDER BY number"


def migrations() -> list[Migration]:
    """Every step that this version knows, in order."""
    return migrations_of(__package__)


def statements(text: str) -> Iterator[str]:
    """The statements of a step, one by one: not every driver executes several at once."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def version_of(connection: Statements) -> int:
    """The number of the newest applied step; 0 for a file without Windlass's tables."""
    if not connection.rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'windlass_schema'"):
        return 0
    return int(connection.rows("SELECT coalesce(max(number), 0) FROM windlass_schema")[0][0])


def migrate(connection: Connection) -> list[str]:
    """Apply the missing steps in one transaction; returns their names."""
    connection.run("BEGIN IMMEDIATE")
    try:
        applied = _apply(connection)
        connection.run("COMMIT")
    except BaseException:
        # A full disk or a failed write ends the transaction.
        if connection.in_transaction:
            connection.run("ROLLBACK")
        raise
    return applied


def _apply(connection: Connection) -> list[str]:
    connection.run(_VERSIONS)
    check_schema(connection)
    found = version_of(connection)
    missing = [step for step in migrations() if step.number > found]
    for step in missing:
        for statement in statements(step.text):
            connection.run(statement)
        connection.run(_RECORD, (step.number, step.name, step.breaking))
    return [step.name for step in missing]


def is_current(connection: Statements) -> bool:
    """Whether all steps are applied; raises SchemaMismatch if an unknown breaking step is."""
    check_schema(connection)
    return version_of(connection) >= migrations()[-1].number


def check_schema(connection: Statements) -> None:
    """Raise SchemaMismatch if an unknown breaking step is applied."""
    check_newer("the database", newer_steps(connection))


def newer_steps(connection: Statements) -> list[tuple[str, bool]]:
    """Steps that this version does not know, and whether they are breaking."""
    newest = migrations()[-1].number
    if version_of(connection) <= newest:
        return []
    return [(name, bool(breaking)) for name, breaking in connection.rows(_NEWER, {"newest": newest})]
