"""Work in a caller's transaction: it exists if and only if the caller commits."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from windlass.errors import InvalidOption, WindlassError
from windlass.store.callers import is_of
from windlass.store.postgres.connection.access import Server, identify
from windlass.store.postgres.connection.db import Db, Statements
from windlass.store.postgres.connection.statements import Statement
from windlass.store.postgres.connection.trouble import NOT_THERE, RETRIED, state_of, translate

T = TypeVar("T")

LIBRARIES = ("psycopg", "psycopg2", "asyncpg", "sqlalchemy", "django")

_SAVE = Statement("SAVEPOINT windlass_guest", ())
_KEEP = Statement("RELEASE SAVEPOINT windlass_guest", ())
_UNDO = Statement("ROLLBACK TO SAVEPOINT windlass_guest", ())

_NO_TRANSACTION = "25P01"
_REFUSED = {
    "25P02": "is in a transaction that has failed: roll it back first, nothing can be done in it any more",
    "25006": "is in a read-only transaction, or open on a server that only reads: no job can be stored with it",
}


class Host(msgspec.Struct, frozen=True):
    """A caller's connection."""

    statements: Statements
    driver: Any
    """The driver's own connection, which stays on one database."""
    begin: str
    """How to begin a transaction on it."""


async def stay(server: Server, host: Host, work: Callable[[Db], Coroutine[Any, Any, T]]) -> T:
    """Work in the caller's transaction, which is unchanged if the work fails."""
    db = Db(host.statements, server.texts)
    try:
        async with _savepoint(host.statements):
            await _meet(server, host.driver, db)
            return await work(db)
    except Exception as error:
        told = _told(error, server, host)
        if told is None:
            raise
        raise told from error


async def on_our_own(server: Server, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Work on a connection of ours; without an event loop, on a temporary one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(_then_hang_up(server, work))
        finally:
            loop.close()
    return await work()


async def _then_hang_up(server: Server, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        return await work()
    finally:
        await server.hang_up()


@contextlib.asynccontextmanager
async def _savepoint(statements: Statements) -> AsyncIterator[None]:
    """Without a transaction, or in a failed one, the server refuses the savepoint."""
    await statements.run(_SAVE, {})
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # the connection itself may be gone
            await statements.run(_UNDO, {})
            await statements.run(_KEEP, {})
        raise
    await statements.run(_KEEP, {})


async def _meet(server: Server, driver: Any, db: Db) -> None:
    """Check that the connection is on our database: no worker would see a job in another."""
    if driver in server.verified_connections:
        return
    try:
        theirs = await identify(db)
    except Exception as error:
        if state_of(error) in NOT_THERE:
            raise InvalidOption(
                "connection", f"is open on a database without the schema {db.schema}: the jobs are in {server.shown}"
            ) from error
        raise
    ours = server.identity
    # A transaction that is older than our tables does not see their id.
    if ours is None or theirs not in (ours, msgspec.structs.replace(ours, store_id=None)):
        raise InvalidOption("connection", f"is open on database {theirs.name!r}, and the jobs are in {server.shown}")
    with contextlib.suppress(TypeError):  # not hashable: checked each time
        server.verified_connections.add(driver)


def _told(error: Exception, server: Server, host: Host) -> Exception | None:
    """The error for the caller; None: as it is.

    A serialization failure or a deadlock is the caller's: code that retries transactions expects the error of its own
    library.
    """
    if isinstance(error, UnicodeEncodeError) and error.encoding not in ("utf-8", "utf8"):
        said = f"has a client_encoding, {error.encoding}, that cannot express {error.object[error.start]!r}: use UTF8"
        return InvalidOption("connection", said)
    if isinstance(error, WindlassError) or not (isinstance(error, OSError) or is_of(error, *LIBRARIES)):
        return None
    state = state_of(error)
    if state in RETRIED:
        return None
    if state == _NO_TRANSACTION:
        return InvalidOption("connection", f"is in no transaction: {host.begin}; your commit then decides")
    if state in _REFUSED:
        return InvalidOption("connection", _REFUSED[state])
    return translate(error, server.shown)
