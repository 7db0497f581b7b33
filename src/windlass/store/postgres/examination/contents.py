"""What is in the tables: shelves that should be empty, and, in depth, a recount of everything that is kept twice."""

from collections.abc import AsyncIterator

from windlass.core.moments import DAY, Micros, show_duration
from windlass.store.examination import Finding, ok, problem, warning
from windlass.store.postgres.db import Db

LATE: Micros = DAY


async def check_shelves(db: Db) -> AsyncIterator[Finding]:
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
    """Count all that is also kept added up, and look for pending jobs where no claim looks."""
    wrong = await db.rows("examine_tallies")
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
            f"{hidden:,} pending jobs lie below the floor from which claims begin",
            "the coordinator finds them within a minute; look again",
        )
    if not wrong and not hidden:
        yield ok("contents", "the tallies agree with the jobs, and no pending job is hidden")
