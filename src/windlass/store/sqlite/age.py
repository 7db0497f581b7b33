"""age: who has waited long moves up to the next higher priority at which jobs wait."""

from collections.abc import Iterator
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.job import HIGHEST_PRIORITY
from windlass.core.moments import Micros
from windlass.store.sqlite.db import Db, array

HEAD = 1000
"""How far into each priority we look: those who wait longest are in front."""


class Lift(NamedTuple):
    """Jobs of one priority that move up, and to where."""

    urgency: int
    ids: list[JobId]


def is_any_aged(db: Db) -> bool:
    """A look without a lock."""
    return any(True for queue, ageing in db.rows("ageing") for _ in _lifts(db, queue, ageing, 1))


def age(db: Db, limit: int) -> int:
    """Up to so many, each by one step: how many."""
    aged = 0
    for queue, ageing in db.rows("ageing"):
        for lift in _lifts(db, queue, ageing, limit):
            ids = lift.ids[: limit - aged]
            db.run("lift", {"urgency": lift.urgency, "ids": array(ids), "now": db.now})
            aged += len(ids)
            if aged == limit:
                return aged
    return aged


def _lifts(db: Db, queue: str, ageing: Micros, limit: int) -> Iterator[Lift]:
    """From the second highest priority downwards, so that nobody moves twice. Each is applied before the next."""
    above: int | None = None
    place = {"queue": queue, "before": db.now - ageing, "limit": max(HEAD, limit)}
    after = -HIGHEST_PRIORITY - 1
    while rows := db.rows("next_head", {"queue": queue, "after": after}):
        urgency = rows[0][0]
        ids = [row[0] for row in db.rows("aged", place | {"urgency": urgency})] if above is not None else []
        if above is not None and ids:
            yield Lift(above, ids)
        rest = db.rows("next_head", {"queue": queue, "after": urgency - 1})
        if rest and rest[0][0] == urgency:
            above = urgency
        after = urgency
