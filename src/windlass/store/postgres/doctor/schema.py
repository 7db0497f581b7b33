"""Whether this Windlass and the tables are compatible, and whether we may use them."""

from collections.abc import AsyncIterator

from windlass.store.doctor import Finding, note, ok, problem, warning
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.migrate import migrations


async def check_schema(db: Db) -> AsyncIterator[Finding]:
    """Which steps are applied; newer compatible ones are a note."""
    steps, there = migrations(), await db.rows("examine_schema", {"schema": db.schema})
    if there and not there[0][1]:
        yield _closed(db, there[0][0], "the schema")
        return
    applied = await db.rows("examine_steps") if there else []
    found = {row[0] for row in applied}
    newer = [row for row in applied if row[0] > steps[-1].number]
    missing = [step.name for step in steps if step.number not in found]
    if breaking := [row[1] for row in newer if row[2]]:
        yield problem(
            "schema",
            f"the schema {db.schema} has step {breaking[0]}, which this version of Windlass cannot work with",
            "upgrade Windlass: pip install --upgrade windlass",
        )
    elif missing:
        state = f"lacks {', '.join(missing)}" if found else "is not there yet"
        yield warning("schema", f"the schema {db.schema} {state}", "windlass migrate (the first use does it too)")
        async for finding in _may_create(db, exists=bool(found)):
            yield finding
    elif newer:
        names = ", ".join(row[1] for row in newer)
        yield note("schema", f"the schema {db.schema} is newer than this Windlass ({names}), and works with it")
    else:
        yield ok("schema", f"{db.schema} is up to date ({steps[-1].name})")


async def _may_create(db: Db, *, exists: bool) -> AsyncIterator[Finding]:
    database, user, may = (await db.rows("examine_may_create"))[0]
    if not exists and not may:
        yield problem(
            "rights",
            f"the user {user} may not create a schema in the database {database}",
            f"GRANT CREATE ON DATABASE {database} TO {user}, or let another user run `windlass migrate`",
        )


async def check_rights(db: Db) -> AsyncIterator[Finding]:
    """Whether this user has the privileges that workers and producers need."""
    closed = await db.rows("examine_rights", {"schema": db.schema})
    if closed:
        yield _closed(db, closed[0][0], ", ".join(row[1] for row in closed) + " in the schema")
    else:
        yield ok("rights", "this user may read, write and empty what a worker does")


def _closed(db: Db, user: str, what: str) -> Finding:
    return problem(
        "rights",
        f"the user {user} may not use {what} {db.schema} as workers and producers do",
        f"GRANT USAGE ON SCHEMA {db.schema} TO {user}; GRANT ALL ON ALL TABLES IN SCHEMA {db.schema} TO {user}",
    )
