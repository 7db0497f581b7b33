"""Numbered, forward-only migrations, applied on first use and by `windlass migrate`.

All tables are called windlass_…, and the version is kept in one of them: the file may be shared with the
tables of the program that uses it.
"""

import sqlite3
from collections.abc import Iterator

from windlass.store.migrations import Migration, check_version, migrations_of
from windlass.store.sqlite.connection import Connection, Statements

_VERSIONS = """
CREATE TABLE IF NOT EXISTS windlass_schema (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)
"""


def migrations() -> list[Migration]:
    """Every step this version knows, in order."""
    return migrations_of(__package__)


def statements(text: str) -> Iterator[str]:
    """The statements of a step one by one, as every driver takes them."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def version_of(connection: Statements) -> int:
    """The number of the newest step that was applied; 0 for a file without our tables."""
    if not connection.rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'windlass_schema'"):
        return 0
    return int(connection.rows("SELECT coalesce(max(number), 0) FROM windlass_schema")[0][0])


def migrate(connection: Connection) -> list[str]:
    """Apply what is missing, in one transaction: all steps or none, and never two processes at once."""
    connection.run("BEGIN IMMEDIATE")
    try:
        applied = _apply(connection)
        connection.run("COMMIT")
    except BaseException:
        # A full disk or a failed write ends the transaction by itself; then the error is what matters.
        if connection.in_transaction:
            connection.run("ROLLBACK")
        raise
    return applied


def _apply(connection: Connection) -> list[str]:
    connection.run(_VERSIONS)
    found, steps = version_of(connection), migrations()
    check_version(found, steps[-1].number)
    missing = [step for step in steps if step.number > found]
    for step in missing:
        for statement in statements(step.text):
            connection.run(statement)
        connection.run("INSERT INTO windlass_schema (number, name) VALUES (?, ?)", (step.number, step.name))
    return [step.name for step in missing]


def is_current(connection: Statements) -> bool:
    """Whether nothing is missing; refuses a schema that a newer Windlass made."""
    found, newest = version_of(connection), migrations()[-1].number
    check_version(found, newest)
    return found == newest
