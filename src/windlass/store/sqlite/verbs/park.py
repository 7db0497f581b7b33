"""park: set jobs aside whose type no live worker knows, so that claims need not skip them."""

from collections import Counter
from collections.abc import Iterable

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.sqlite.connection.access import Access
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.key_queue import assign_free_key_slots
from windlass.store.sqlite.liveness.workers import live_workers

HEAD = 200
"""Jobs of each queue that are checked: those behind them do not slow down claims yet."""
MAX_PARKED = 1000
UNPARK_BATCH = 1000
"""Jobs unparked by one transaction, for which all other writers wait."""
MAX_UNPARK_TIME: Micros = SECOND // 2
"""How long one call unparks jobs; other duties wait for it."""


def needs_parking(db: Db) -> bool:
    """Whether `park` would find anything; takes no lock."""
    return bool(_unknown_types(db))


def park(db: Db) -> dict[str, int]:
    """Park jobs of unknown types at the heads of queues; returns {type: jobs}. Without a live worker, parks none."""
    parked: Counter[str] = Counter()
    for queue, type_ in _unknown_types(db):
        values = {"queue": queue, "type": type_, "limit": MAX_PARKED}
        key_queues = [(queue, row[0]) for row in db.rows("parked_keys", values)]
        parked[type_] += db.run("park", {**values, "now": db.now})
        assign_free_key_slots(db, key_queues)
    return dict(parked)


def parked_types(db: Db) -> list[str]:
    """The types with parked jobs, one seek each."""
    found = [""]
    while rows := db.rows("next_parked", {"after": found[-1]}):
        found.append(rows[0][0])
    return found[1:]


def unpark(db: Db, types: Iterable[str]) -> int:
    """Unpark one batch of jobs of these types; returns how many."""
    jobs = db.rows("parked", {"types": array(sorted(types)), "limit": UNPARK_BATCH})
    if jobs:
        db.run("unpark", {"ids": array([id_ for id_, _, _ in jobs]), "now": db.now})
        assign_free_key_slots(db, sorted({(queue, key) for _, queue, key in jobs if key is not None}))
    return len(jobs)


async def unpark_known(access: Access) -> None:
    """Unpark the jobs whose type a live worker knows, for at most MAX_UNPARK_TIME."""
    types = await access.read(_known_types)
    if not await access.read(lambda db: is_any_parked(db, types)):
        return
    end = since_boot() + MAX_UNPARK_TIME
    while await access.write(lambda db: unpark(db, types)) == UNPARK_BATCH and since_boot() < end:
        pass


def is_any_parked(db: Db, types: Iterable[str]) -> bool:
    """Whether a job of one of these types is parked; takes no lock."""
    return bool(db.rows("parked", {"types": array(sorted(types)), "limit": 1}))


def _unknown_types(db: Db) -> list[tuple[str, str]]:
    """Types at the heads of queues that no live worker knows, each with its queue."""
    known = _known_types(db)
    if not known:
        return []
    unknown, queue = [], ""
    while rows := db.rows("next_queue", {"after": queue}):
        queue = rows[0][0]
        heads = db.rows("head_types", {"queue": queue, "limit": HEAD})
        unknown += [(queue, row[0]) for row in heads if row[0] not in known]
    return unknown


def _known_types(db: Db) -> set[str]:
    return {type_ for worker in live_workers(db) for type_ in worker.types}
