"""Whether this Windlass and the tables fit together, and whether we may use them."""

from collections.abc import AsyncIterator

from windlass.store.examination import Finding, note, ok, problem, warning
from windlass.store.postgres.db import Db
from windlass.store.postgres.migrate import migrations


async def check_schema(db: Db) -> AsyncIterator[Finding]:
    """Which steps are applied; newer ones that do not break us are good to know."""
    steps = migrations()
    there = (await db.rows("examine_schema", {"name": f"{db.schema}.schema"}))[0][0]
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
    """Whether this user may do with the tables what a worker and a producer do."""
    closed = [row[0] for row in await db.rows("examine_rights", {"schema": db.schema})]
    if closed:
        yield problem(
            "rights",
            f"this user may not read and write {', '.join(closed)} in the schema {db.schema}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA {db.schema} TO this user",
        )
    else:
        yield ok("rights", "all tables may be read and written by this user")
