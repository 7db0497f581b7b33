"""Throttles optional work, which may take long while an old snapshot is held, to a share of the time."""

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

SHARE = 20
"""At most 1/20 of the time is spent here, once it takes long."""
LONG: Micros = SECOND // 100
MAX_PAUSE: Micros = 60 * SECOND
"""The longest pause, however long it took: a process that was stopped must not skip it for hours."""
WEIGHT = 4
"""The last run counts as 1/4 in the average."""


class Throttle:
    """Throttles one kind of work of one process."""

    def __init__(self) -> None:
        self._began = 0
        self._again = 0
        self._usual: float = 0.0

    def may_run(self) -> bool:
        """Whether it may run now; if so, call `done` afterwards."""
        self._began = since_boot()
        return self._began >= self._again

    def done(self) -> None:
        """It ran: its duration decides when it may run again."""
        ended = since_boot()
        taken = ended - self._began
        # A single slow run does not count: a plan was made, or the machine was busy.
        self._usual += (taken - self._usual) / WEIGHT
        self._again = ended + min(SHARE * taken, MAX_PAUSE) if min(taken, self._usual) > LONG else 0
