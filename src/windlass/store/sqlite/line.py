"""The lines for concurrency keys: whoever frees a slot, or comes to a line, lets the next one go on."""

from collections.abc import Collection, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.moments import Micros
from windlass.core.slots import Position, granted
from windlass.core.status import Status
from windlass.store.slots import NOBODY, Line, Seating, Use, lines_of, seat
from windlass.store.sqlite.db import Db, array

FIRST_LOOK = 2
"""Mostly one slot was freed: the next in line gets it, and the one after that shows that no more is free."""
FURTHER_LOOK = 500

_taken = msgspec.json.Decoder(tuple[int, ...])
_head = msgspec.json.Decoder(Position)
_waiting = msgspec.json.Decoder(list[tuple[str, int | None, int]])


def move_up(db: Db, lines: Collection[Line]) -> None:
    """Give free slots of these keys to the first in line. After that, nobody who is first could have one."""
    most = FIRST_LOOK
    while lines:
        lines, most = _move_up(db, lines, most), FURTHER_LOOK


def _move_up(db: Db, lines: Collection[Line], most: int) -> list[Line]:
    """Those of the lines in which all that were looked at went on: there may be more."""
    going: list[tuple[str, int]] = []
    rated, unfinished = set(), []
    for queue, key, taken, heads in db.rows("line_heads", {"lines": array(lines), "most": most}):
        waiting = _waiting.decode(heads)
        slots = granted(_taken.decode(taken), (limit for _, limit, _ in waiting))
        admitted = waiting[: len(slots)]
        going += zip((id_ for id_, _, _ in admitted), slots, strict=True)
        if any(has_rate for _, _, has_rate in admitted):
            rated.add(queue)
        if len(slots) == most:
            unfinished.append((queue, key))
    if going:
        db.run("take_slots", {"batch": array(going), "now": db.now})
    mark_rated(db, rated)
    return unfinished


def seating(db: Db, due: Sequence[tuple[NewJob, Micros]]) -> Seating:
    """Which of these new jobs, with their ranks, go straight in: one look at all of their keys."""
    lines = lines_of(job for job, _ in due)
    if not lines:
        return NOBODY
    uses = {
        (queue, key): Use(_taken.decode(taken or "[]"), None if head is None else _head.decode(head))
        for queue, key, taken, head in db.rows("key_use", {"lines": array(lines)})
    }
    return seat(due, uses)


def mark_rated(db: Db, queues: Collection[str]) -> None:
    """Jobs whose key has a rate are pending there now: claims must ask for it."""
    for queue in queues:
        db.run("set_rated", {"queue": queue})


def settle_in(db: Db, id_: JobId, status: Status, lines: Collection[Line]) -> Status:
    """A person has moved a job in or between these lines; without any it has the status that it was given."""
    if not lines:
        return status
    move_up(db, lines)
    return Status(db.rows("find", {"id": id_})[0][0])
