"""Callers whose library reports commits: Django, and SQLAlchemy over a driver that one of the stores supports."""

import sys
from typing import Any

from windlass.errors import InvalidOption
from windlass.store.callers import is_of, of_django, of_sqlalchemy, require_loop, shown
from windlass.store.memory.batch import Batch, Caller
from windlass.store.memory.drivers import driver_caller

KINDS = (
    "a connection of sqlite3, psycopg, psycopg2 or asyncpg, a Connection or Session of SQLAlchemy (also the async "
    "ones), or an alias of Django"
)
DRIVERS = ("sqlite3", "aiosqlite", "psycopg", "psycopg2", "asyncpg")


async def caller_of(connection: Any) -> Caller:
    """The caller with this connection; refuses one that is in no transaction, or of another kind."""
    if isinstance(connection, str):
        return DjangoCaller(connection)
    if not is_of(connection, "sqlalchemy"):
        return driver_caller(connection, KINDS)
    if (registry := getattr(connection, "registry", None)) is not None:  # a scoped session
        connection = registry()
    if (run_sync := getattr(connection, "run_sync", None)) is None:
        inner = _checked(connection)
    else:
        require_loop()
        inner = await run_sync(_checked)
        connection = getattr(connection, "sync_session", inner)
    return ConnectionCaller(inner) if hasattr(connection, "exec_driver_sql") else SessionCaller(connection)


def _checked(connection: Any) -> Any:
    """The SQLAlchemy Connection, which must be in a transaction of a supported driver."""
    inner = of_sqlalchemy(connection, KINDS)
    if not is_of(inner.connection.driver_connection, *DRIVERS):
        driver = shown(inner.connection.driver_connection)
        raise InvalidOption("connection", f"is not of {', '.join(DRIVERS)} but of {driver}, which no store supports")
    if getattr(inner.connection.dbapi_connection, "autocommit", False) is True:
        raise InvalidOption("connection", "is in no transaction: its isolation_level is AUTOCOMMIT, use another")
    return inner


class SessionCaller:
    """A Session: the end of its outermost transaction decides, even if a test rolls back a transaction around it."""

    def __init__(self, session: Any) -> None:
        self.owner = session

    async def join(self, batch: Batch) -> None:
        """The commit of the outermost transaction commits the batch; a rollback of any transaction drops it."""
        session, inside = self.owner, [self.owner.get_nested_transaction() or self.owner.get_transaction()]
        while inside[-1].parent is not None:
            inside.append(inside[-1].parent)

        def committed(_: Any) -> None:
            if (session.get_nested_transaction() or session.get_transaction()) is inside[-1]:
                batch.commit()

        def rolled_back(_: Any, transaction: Any) -> None:
            if transaction in inside:
                batch.roll_back()

        def ended(_: Any, transaction: Any) -> None:
            if transaction is inside[-1]:
                batch.roll_back()  # a no-op after a commit

        event = sys.modules["sqlalchemy.event"]
        for name, listener in (
            ("after_commit", committed),
            ("after_soft_rollback", rolled_back),
            ("after_transaction_end", ended),
        ):
            event.listen(session, name, listener)


class ConnectionCaller:
    """A Connection: its commit decides."""

    def __init__(self, connection: Any) -> None:
        self.owner = connection

    async def join(self, batch: Batch) -> None:
        """The commit of the connection commits the batch; a rollback, or one to an earlier savepoint, drops it."""
        connection, names, committing = self.owner, _savepoints(self.owner), []

        def commits(_: Any) -> None:
            committing.append(True)  # the event precedes the commit, which may fail

        def failed(context: Any) -> None:
            if committing and context.connection is connection:
                batch.roll_back()

        def rolled_back(_: Any) -> None:
            batch.roll_back()

        def rolled_back_to(_: Any, name: str, context: Any) -> None:
            if name in names:
                batch.roll_back()

        def update() -> None:
            if committing:
                batch.commit()
                event.remove(connection.engine, "handle_error", failed)

        event = sys.modules["sqlalchemy.event"]
        event.listen(connection, "commit", commits)
        event.listen(connection, "rollback", rolled_back)
        event.listen(connection, "rollback_savepoint", rolled_back_to)
        event.listen(connection.engine, "handle_error", failed)
        batch.update = update


def _savepoints(connection: Any) -> list[str]:
    """The names of the savepoints that are set now, innermost first."""
    names, nested = [], connection.get_nested_transaction()
    while nested is not None:
        names.append(nested._savepoint)
        nested = nested._previous_nested
    return names


class DjangoCaller:
    """An alias of Django: `transaction.on_commit` decides."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self.owner = of_django(alias, KINDS)
        if not self.owner.in_atomic_block:
            raise InvalidOption(
                "connection", "is in no transaction: use `with transaction.atomic():`; the jobs exist once you commit"
            )

    async def join(self, batch: Batch) -> None:
        """Django drops the callback if its savepoint is rolled back."""
        wrapper, callback = self.owner, batch.commit

        def update() -> None:
            if not any(callback in entry for entry in wrapper.run_on_commit):
                batch.roll_back()

        sys.modules["django.db"].transaction.on_commit(callback, using=self._alias)
        batch.update = update
