"""park: jobs whose type no live worker knows are set aside, so that claims need not walk past them for ever."""

from collections import Counter

from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.line import move_up
from windlass.store.sqlite.workers import live_workers

HEAD = 200
"""How far into each queue we look: what lies deeper is in nobody's way yet."""
MOST_PARKED = 1000


def needs_parking(db: Db) -> bool:
    """A look without a lock."""
    return bool(_strangers(db))


def park(db: Db) -> dict[str, int]:
    """Set strangers at the heads of queues aside: {type: jobs}. Without a live worker nobody is in anyone's way."""
    parked: Counter[str] = Counter()
    for queue, type_ in _strangers(db):
        values = {"queue": queue, "type": type_, "limit": MOST_PARKED}
        lines = [(queue, row[0]) for row in db.rows("strange_lines", values)]
        parked[type_] += db.run("park", {**values, "now": db.now})
        move_up(db, lines)
    return dict(parked)


def unpark(db: Db, types: tuple[str, ...]) -> int:
    """A worker that knows these types is here: their jobs go back to where they were."""
    lines = [(queue, key) for queue, key in db.rows("parked_lines", {"types": array(types)})]
    jobs = db.run("unpark", {"types": array(types), "now": db.now})
    move_up(db, lines)
    return jobs


def _strangers(db: Db) -> list[tuple[str, str]]:
    known = {type_ for worker in live_workers(db) for type_ in worker.types}
    if not known:
        return []
    strangers, queue = [], ""
    while rows := db.rows("next_queue", {"after": queue}):
        queue = rows[0][0]
        heads = db.rows("head_types", {"queue": queue, "limit": HEAD})
        strangers += [(queue, row[0]) for row in heads if row[0] not in known]
    return strangers
