"""Checks of schema, privileges and contents: overdue jobs and, if deep, counts, hidden jobs and orphaned keys."""

from collections.abc import AsyncIterator

from windlass.core.moments import DAY, Micros, show_duration
from windlass.store.doctor import KEY_PORTION, Finding, OrphanedKey, key_findings, note, ok, problem, warning
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.migrate import migrations

LATE: Micros = DAY
FREE_KEY = "DELETE FROM {schema}.idempotency_keys WHERE until IS NULL AND job = '{job}'"
"""The statement with which an operator frees an orphaned key: advice, which is not executed here."""


async def check_retention(db: Db) -> AsyncIterator[Finding]:
    """Finished jobs that should have been dropped more than a day ago."""
    jobs, since = (await db.rows("examine_overdue", {"late": LATE, "day": DAY}))[0]
    if since is None:
        yield ok("retention", "no finished job is kept longer than it should be")
        return
    many = f"{jobs:,} finished jobs" if jobs else "finished jobs"
    yield warning(
        "retention",
        f"{many} should have been dropped up to {show_duration(since)} ago",
        "a coordinator drops them: is a worker running? A transaction that stays open prevents that",
    )


async def check_contents(db: Db) -> AsyncIterator[Finding]:
    """Recount history, and look for pending jobs below the watermarks."""
    wrong = await db.rows("examine_history_counts")
    for queue, status, stored, counted in wrong:
        yield problem(
            "contents",
            f"queue {queue!r} has {counted:,} {status} jobs, and its counts say {stored:,}",
            "rows were changed by other programs; the counts are wrong by that much, and no job is lost",
        )
    hidden = (await db.rows("examine_hidden"))[0][0]
    if hidden:
        yield warning(
            "contents",
            f"{hidden:,} pending jobs are below the watermark at which claims begin",
            "the coordinator finds them within a minute; run doctor again then",
        )
    if not wrong and not hidden:
        yield ok("contents", "the counts agree with the jobs, and no pending job is hidden")


async def check_idempotency_keys(db: Db) -> AsyncIterator[Finding]:
    """Look for keys that nothing will free, batch by batch."""
    checked, orphaned, queue, hash_ = 0, list[OrphanedKey](), "", ""
    while True:
        values = {"queue": queue, "hash": hash_, "limit": KEY_PORTION}
        ((count, queue, hash_, found),) = await db.rows("examine_keys", values)
        checked += count
        orphaned += [OrphanedKey(*each) for each in found]
        if count < KEY_PORTION:
            break
    for finding in key_findings(checked, orphaned, lambda key: FREE_KEY.format(schema=db.schema, job=key.job)):
        yield finding


async def check_schema(db: Db) -> AsyncIterator[Finding]:
    """Whether all migrations are applied, and this version of Windlass works with the tables."""
    steps, existing = migrations(db.profile), await db.rows("examine_schema", {"schema": db.schema})
    if existing and not existing[0][1]:
        yield _denied(db, existing[0][0], "the schema")
        return
    applied = await db.rows("examine_steps") if existing else []
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
        state = f"lacks {', '.join(missing)}" if found else "does not exist yet"
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
    denied = await db.rows("examine_rights", {"schema": db.schema})
    if denied:
        yield _denied(db, denied[0][0], ", ".join(row[1] for row in denied) + " in the schema")
    else:
        yield ok("rights", "this user has the privileges that workers need on all tables")


def _denied(db: Db, user: str, what: str) -> Finding:
    return problem(
        "rights",
        f"the user {user} may not use {what} {db.schema} as workers and producers do",
        f"GRANT USAGE ON SCHEMA {db.schema} TO {user}; GRANT ALL ON ALL TABLES IN SCHEMA {db.schema} TO {user}",
    )
