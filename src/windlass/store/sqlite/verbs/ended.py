"""ended: jobs by the moment at which they ended, which is the order of the rows in the history."""

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.records import NEWEST, Ends, FailureKey, JobEnd
from windlass.store.rows import to_job_end
from windlass.store.sqlite.db import Db

FIRST_STEP = 128
"""Rows before the end of the history at which the search begins."""


def ended(db: Db, since: Micros | None, after: JobId | None, limit: int) -> Ends:
    """Jobs that ended after `since`, or at it with a higher id than `after`."""
    now = db.now
    if since is None:
        return Ends(now, ())
    values = {"row": _last_before(db, since), "since": since, "after": after or "", "limit": limit}
    return Ends(now, tuple(map(to_job_end, db.rows("ended", values))))


def dead_ends(db: Db, limit: int, before: FailureKey = NEWEST) -> list[JobEnd]:
    """Dead jobs, read by their own index."""
    rows = db.rows("dead_ends", {"limit": limit, "at": before[0], "id": before[1]})
    return [to_job_end(row) for row in rows]


def _last_before(db: Db, since: Micros) -> int:
    """A row that ended before `since`, close to the last such row; 0 if there may be none."""
    last: int = db.rows("last_history_row")[0][0] or 0
    step = FIRST_STEP
    while (row := last - step) > 0:
        found = db.rows("history_row", {"row": row})
        if not found or found[0][0] < since:
            return row
        step *= 4
    return 0
