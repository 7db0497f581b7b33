"""admit: jobs whose time has come become pending, or stand in line for their key.

Those of a queue that has become fair get their lanes.
"""

from windlass.store.records import Admitted
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.laning import is_laning, put_in_lanes
from windlass.store.sqlite.line import move_up


def admit(db: Db, limit: int) -> Admitted:
    """The earliest first; their rank is the moment of admission, so that they fall in behind who waits already."""
    values = {"now": db.now, "limit": limit}
    lines = [(queue, key) for queue, key in db.rows("due_lines", values)]
    jobs = db.run("admit", values)
    move_up(db, lines)
    if is_laning(db):
        put_in_lanes(db)
    return Admitted(jobs, next_due_in(db))


def next_due_in(db: Db) -> int | None:
    """How long until the next job is due, or until there is more to do for a queue that has become fair."""
    if is_laning(db):
        return 0
    rows = db.rows("next_due")
    return max(0, rows[0][0] - db.now) if rows else None
