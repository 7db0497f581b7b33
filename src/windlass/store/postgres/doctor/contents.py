"""The contents of the tables: overdue partitions and, in depth, a recount of all redundant numbers."""

from collections.abc import AsyncIterator

from windlass.core.moments import DAY, Micros, show_duration
from windlass.store.doctor import Finding, ok, problem, warning
from windlass.store.orphaned_keys import PORTION, OrphanedKey, conclude
from windlass.store.postgres.connection.db import Db

LATE: Micros = DAY
FREE_KEY = "DELETE FROM {schema}.idempotency_keys WHERE until IS NULL AND job = '{job}'"
"""Advice; nothing is changed here."""


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
        "a coordinator drops them: is a worker running? A transaction that stays open keeps it from that",
    )


async def check_contents(db: Db) -> AsyncIterator[Finding]:
    """Recount history, and look for pending jobs below the watermarks."""
    wrong = await db.rows("examine_history_counts")
    for queue, status, kept, counted in wrong:
        yield problem(
            "contents",
            f"queue {queue!r} has {counted:,} {status} jobs, and its tallies say {kept:,}",
            "rows were changed past Windlass; counts are wrong by that much, and no job is lost",
        )
    hidden = (await db.rows("examine_hidden"))[0][0]
    if hidden:
        yield warning(
            "contents",
            f"{hidden:,} pending jobs lie below the watermark from which claims begin",
            "the coordinator finds them within a minute; look again",
        )
    if not wrong and not hidden:
        yield ok("contents", "the tallies agree with the jobs, and no pending job is hidden")


async def check_idempotency_keys(db: Db) -> AsyncIterator[Finding]:
    """Look for orphaned keys, a portion at a time."""
    seen, left, queue, hash_ = 0, list[OrphanedKey](), "", ""
    while True:
        values = {"queue": queue, "hash": hash_, "limit": PORTION}
        ((count, queue, hash_, found),) = await db.rows("examine_keys", values)
        seen += count
        left += [OrphanedKey(*each) for each in found]
        if count < PORTION:
            break
    for finding in conclude(seen, left, lambda key: FREE_KEY.format(schema=db.schema, job=key.job)):
        yield finding
