"""Connections of callers for transactional enqueue, recognised by their classes.

No library is imported for it: a program without SQLAlchemy or Django needs neither.
"""

import asyncio
import sys
from typing import Any

from windlass.errors import InvalidOption, StoreUnavailable


def is_of(thing: object, *libraries: str) -> bool:
    """Whether its class is, or derives from, a class of these libraries."""
    return any(kind.__module__.partition(".")[0] in libraries for kind in type(thing).__mro__)


def shown(thing: object) -> str:
    """A description for an error."""
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def of_sqlalchemy(connection: Any, kinds: str) -> Any:
    """The SQLAlchemy Connection of a Connection or Session, in a transaction; `kinds` names the accepted ones."""
    if not hasattr(connection, "exec_driver_sql") and not callable(getattr(connection, "connection", None)):
        raise InvalidOption("connection", f"must be {kinds}, not {shown(connection)}, which is in no transaction")
    try:
        inner = connection if hasattr(connection, "exec_driver_sql") else connection.connection()
        if not inner.in_transaction():
            # As any first statement would: otherwise the caller's commit() would have nothing to commit.
            inner.begin()
        assert inner.connection is not None
    except Exception as error:
        raise StoreUnavailable(f"connection: {error}") from error
    return inner


def of_django(alias: str, kinds: str) -> Any:
    """Django's database wrapper, connected."""
    django = sys.modules.get("django.db")
    if django is None:
        raise InvalidOption("connection", f"must be {kinds}; Django is not in use here, so {alias!r} is not an alias")
    if alias not in django.connections:
        raise InvalidOption("connection", f"{alias!r} is not an alias of DATABASES")
    wrapper = django.connections[alias]
    try:
        wrapper.ensure_connection()
    except Exception as error:
        raise StoreUnavailable(f"connection: {error}") from error
    return wrapper


def require_loop() -> None:
    """An asynchronous connection belongs to an event loop: a blocking call cannot use it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidOption("connection", "is asynchronous: use `await aenqueue()`") from None
