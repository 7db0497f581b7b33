"""Examine a server: every check, one after the other, whatever the others found. Nothing is made or changed."""

import asyncio
from collections.abc import AsyncIterator, Callable

from windlass.store.clock import Clock
from windlass.store.examination import Census, Examination, Finding, Level, problem
from windlass.store.postgres.access import CONNECT_SECONDS
from windlass.store.postgres.address import Address
from windlass.store.postgres.db import Db, Texts
from windlass.store.postgres.examination.census import take_census
from windlass.store.postgres.examination.contents import check_contents, check_shelves
from windlass.store.postgres.examination.notices import check_notices
from windlass.store.postgres.examination.schema import check_rights, check_schema
from windlass.store.postgres.examination.server import check_connections, check_durability, check_role, check_versions
from windlass.store.postgres.examination.vacuum import check_dead_rows, check_snapshots
from windlass.store.postgres.session import Session, connect
from windlass.store.postgres.trouble import translate

SECONDS_TO_CHECK = 20.0
"""Each check; a deep one takes as long as it needs."""

Check = Callable[[Db], AsyncIterator[Finding]]


async def examine(address: Address, shown: str, clock: Clock | None, *, deep: bool) -> Examination:
    """Everything that can be told about a server, reachable or not, with our tables or not."""
    book = Notebook(shown)
    try:
        session = await connect(address.dsn, CONNECT_SECONDS, pooled=None)
    except Exception as error:
        advice = "check host, port, database and user of the address, and whether the server runs"
        book.findings.append(problem("server", str(translate(error, shown)), advice))
        return Examination(tuple(book.findings), None)
    try:
        return await _inside(address, session, Db(session, Texts(address.schema, clock)), book, deep=deep)
    finally:
        session.drop()


async def _inside(address: Address, session: Session, db: Db, book: "Notebook", *, deep: bool) -> Examination:
    of_server: dict[str, Check] = {
        "versions": check_versions,
        "durability": check_durability,
        "role": check_role,
        "connections": check_connections,
        "vacuum": check_snapshots,
    }
    for name, check in of_server.items():
        await book.look(name, check(db), session)
    await book.look("wake-up", check_notices(address, session), session)
    census = None
    if await book.look("schema", check_schema(db), session):
        for name, check in {"rights": check_rights, "vacuum": check_dead_rows, "retention": check_shelves}.items():
            await book.look(name, check(db), session)
        if deep:
            await book.look("contents", check_contents(db), session, seconds=None)
        census = await book.count(db, session)
    return Examination(tuple(book.findings), census)


class Notebook:
    """What was found so far."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self.findings: list[Finding] = []

    async def look(
        self, name: str, check: AsyncIterator[Finding], session: Session, seconds: float | None = SECONDS_TO_CHECK
    ) -> bool:
        """Do a check and write down what it finds: whether all of that is as it should be, or better to know."""
        if not session.alive:
            return False  # whichever check saw the connection go has said so
        found = []
        try:
            async with asyncio.timeout(seconds):
                found = [each async for each in check]
        except Exception as error:
            found.append(self._trouble(name, error))
        self.findings += found
        return all(each.level in (Level.OK, Level.NOTE) for each in found)

    async def count(self, db: Db, session: Session) -> Census | None:
        """The census, all of it in one snapshot."""
        if not session.alive:
            return None
        try:
            async with asyncio.timeout(SECONDS_TO_CHECK):
                await session.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return await take_census(db)
        except Exception as error:
            self.findings.append(self._trouble("jobs", error))
            return None

    def _trouble(self, name: str, error: Exception) -> Finding:
        said = translate(error, self._shown)
        return problem(
            name, f"could not be checked: {said}", "if no other finding explains that, look at the server's log"
        )
