"""ended: jobs by the moment at which they ended."""

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.postgres.connection.db import Db
from windlass.store.records import NEWEST, Ends, FailureKey, JobEnd
from windlass.store.rows import to_job_end

NO_ID = "00000000-0000-0000-0000-000000000000"


async def ended(db: Db, since: Micros | None, after: JobId | None, limit: int) -> Ends:
    """Jobs that ended after `since`, or at it with a higher id than `after`."""
    now = await db.now()
    if since is None:
        return Ends(now, ())
    rows = await db.rows("ended", {"since": since, "after": after or NO_ID, "limit": limit})
    return Ends(now, tuple(map(to_job_end, rows)))


async def dead_ends(db: Db, limit: int, before: FailureKey = NEWEST) -> list[JobEnd]:
    """Dead jobs that ended before `before`, the newest first."""
    rows = await db.rows("dead_ends", {"limit": limit, "at": before[0], "id": before[1]})
    return [to_job_end(row) for row in rows]
