"""Laning: a queue has become fair, and the jobs that wait in it are told whose turn they wait for.

New ones know it from the start, and nobody loses his lane again; so one walk over the jobs is enough, a portion at a
time. Until it is over, those without a lane are claimed after the others.
"""

from windlass.store.sqlite.db import Db

PORTION = 5000


def is_laning(db: Db) -> bool:
    """Whether any queue has become fair and its jobs do not know it yet."""
    return bool(db.rows("laneless"))


def put_in_lanes(db: Db) -> None:
    """One portion of the walk."""
    for queue, after in db.rows("laneless"):
        rows = db.rows("laneless_until", {"after": after, "jobs": PORTION})
        until = rows[0][0] if rows else None
        db.run("put_in_lanes", {"queue": queue, "after": after, "until": until})
        db.run("set_laning", {"queue": queue, "until": until})
