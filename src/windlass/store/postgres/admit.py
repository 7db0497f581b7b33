"""admit: jobs whose time has come become pending; and the floor from which they are looked for.

Admitted jobs leave dead entries at the low end of the index of what is due, as claimed ones do in that of what is
pending (see floors.py). So there is a floor here too: nothing waits for a time before it.
"""

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.postgres.db import Db
from windlass.store.records import Admitted

MARGIN: Micros = 2 * SECOND
"""A transaction has its clock before it has its number: what it will put down as due may be so much in the past."""
WHOLE_EVERY: Micros = 60 * SECOND


class _Noted(msgspec.Struct, frozen=True):
    """A moment, and a number below which are all transactions that had begun by then."""

    due: Micros
    ahead: int


class DueFloor:
    """What the one who raises the floor has noted; several who do so do no harm."""

    def __init__(self) -> None:
        self.noted: _Noted | None = None
        self.whole_at: Micros = 0


async def admit(db: Db, limit: int) -> Admitted:
    """The earliest first; their rank is the moment of admission, so that they fall in behind who waits already."""
    jobs, next_due_in = (await db.rows("admit", {"limit": limit}))[0]
    return Admitted(jobs, next_due_in)


async def raise_due_floor(db: Db, floor: DueFloor) -> None:
    """Note a moment; at a later call, when every transaction of that time is over, raise the floor up to it.

    Now and then the look begins at the very first: a job that lies below the floor in spite of everything, because
    its transaction stood still for longer than the margin, is late then but not lost.
    """
    noted = floor.noted
    if noted is not None:
        whole = not noted.due < floor.whole_at <= noted.due + WHOLE_EVERY
        values = {"due": noted.due, "ahead": noted.ahead, "whole": whole}
        if not await db.rows("raise_due_floor", values):
            return
        if whole:
            floor.whole_at = noted.due + WHOLE_EVERY
    now, ahead = (await db.rows("note_moment"))[0]
    floor.noted = _Noted(now - MARGIN, ahead)
