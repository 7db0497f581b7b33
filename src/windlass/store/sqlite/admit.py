"""admit: jobs whose time has come become pending; those of a queue that has become fair get their lanes."""

from windlass.store.records import Admitted
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.laning import is_laning, put_in_lanes


def admit(db: Db, limit: int) -> Admitted:
    """The earliest first; their rank is the moment of admission, so that they fall in behind who waits already."""
    now = db.now
    jobs = db.run("admit", {"now": now, "limit": limit})
    if is_laning(db):
        put_in_lanes(db)
    return Admitted(jobs, next_due_in(db))


def next_due_in(db: Db) -> int | None:
    """How long until the next job is due, or until there is more to do for a queue that has become fair."""
    if is_laning(db):
        return 0
    rows = db.rows("next_due")
    return max(0, rows[0][0] - db.now) if rows else None
