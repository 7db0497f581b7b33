"""admit: jobs whose time has come become pending."""

from windlass.store.records import Admitted
from windlass.store.sqlite.db import Db


def admit(db: Db, limit: int) -> Admitted:
    """The earliest first; their rank is the moment of admission, so that they fall in behind who waits already."""
    now = db.now
    jobs = db.run("admit", {"now": now, "limit": limit})
    return Admitted(jobs, next_due_in(db))


def next_due_in(db: Db) -> int | None:
    """How long until the next job is due."""
    rows = db.rows("next_due")
    return max(0, rows[0][0] - db.now) if rows else None
