"""Limits optional work, which may take long while an old snapshot is held, to a share of the time."""

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

SHARE = 20
"""Work that takes long may take at most 1/20 of the time."""
LONG: Micros = SECOND // 100
"""Work that is faster than this is not throttled."""
MAX_PAUSE: Micros = 60 * SECOND
"""The longest pause, however long the work took: a process that was stopped must not skip it for hours."""
RESCAN_EVERY: Micros = 1 * SECOND


class Throttle:
    """Throttles one kind of work of one process."""

    def __init__(self) -> None:
        self._began = 0
        self._again = 0
        self._last = 0

    def may_run(self) -> bool:
        """Whether the work may run now; if so, call `done` afterwards."""
        self._began = since_boot()
        return self._began >= self._again

    def done(self, waited: Micros = 0) -> None:
        """The work has run; `waited` is how long it waited for others, which does not count."""
        ended = since_boot()
        taken = ended - self._began - waited
        # A single slow run does not count: perhaps a plan was made, or the machine was busy.
        usual, self._last = min(taken, self._last), taken
        self._again = ended + min(SHARE * usual, MAX_PAUSE) if usual > LONG else 0


class Rescans:
    """When claims of one process from the same queues start at the watermarks instead of the cursors.

    Jobs may be behind a cursor: they were committed late, or another transaction had locked them.
    """

    def __init__(self, every: Micros = RESCAN_EVERY) -> None:
        self._every = every
        self._ended = 0
        self._throttle = Throttle()
        self.flowing = False
        """Whether the last claim got as many jobs as it asked for."""

    def due(self) -> bool:
        """Whether the next claim rescans: from time to time, and after a claim that got too few jobs."""
        allowed = self._throttle.may_run()
        return allowed and (not self.flowing or since_boot() - self._ended >= self._every)

    def may_run(self) -> bool:
        """Whether a claim that got too few jobs may rescan as well."""
        return self._throttle.may_run()

    def done(self, waited: Micros = 0) -> None:
        """A claim began at the watermarks; `waited` is how long it waited for other claims."""
        self._throttle.done(waited)
        self._ended = since_boot()
