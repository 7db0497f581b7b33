"""Timeouts and cancellations: one sweep over what runs, ten times a second, and no timer per job."""

from windlass.core.moments import SECOND, Micros
from windlass.worker.slots import Slots
from windlass.worker.work import Halt, Work

CANCEL_PATIENCE: Micros = 10 * SECOND
"""How long a thread may take to see `ctx.cancelled`."""
CELL_PATIENCE: Micros = SECOND
"""How long a cell may: it can be killed, so there is no need to wait for long."""
DEAF_AFTER: Micros = 5 * SECOND
"""An `async def` handler that was cancelled and still runs will not end."""


class Deadlines:
    """Tells handlers to end when their time is over, and names those that do not."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._given_up: set[Work] = set()

    def sweep(self, now: Micros) -> list[Work]:
        """Halt what must be halted; those that cannot be, each once."""
        for work in list(self._slots.active):
            if work.halted is None and (why := _due(work, now)) is not None:
                self._slots.halt(work, why)
        self._given_up &= self._slots.active
        deaf = [work for work in self._slots.active if _deaf(work, now) and work not in self._given_up]
        self._given_up.update(deaf)
        return deaf


def _due(work: Work, now: Micros) -> Halt | None:
    if 0 < work.deadline <= now:
        return Halt.TIMEOUT
    if work.cancelled_on is not None and now >= work.cancelled_on + _patience(work):
        return Halt.CANCEL
    return None


def _patience(work: Work) -> Micros:
    if work.task is not None:
        return 0
    return CELL_PATIENCE if work.apart else CANCEL_PATIENCE


def _deaf(work: Work, now: Micros) -> bool:
    """Whether it was told to end and will not: a thread never does, a coroutine has had its time."""
    if work.halted in (None, Halt.DRAIN) or work.apart:
        return False
    return work.task is None or now >= work.halted_on + DEAF_AFTER
