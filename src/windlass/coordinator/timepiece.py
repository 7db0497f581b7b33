"""Notices when the wall clock is set: by comparing it with the one that never jumps."""

from windlass.core.events import ClockJumped, Emit
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import Clock

NOTEWORTHY: Micros = 5 * SECOND
"""A clock that is slewed moves by far less between two looks."""


class Timepiece:
    """Looks at both clocks again and again."""

    def __init__(self, clock: Clock, emit: Emit) -> None:
        self._clock = clock
        self._emit = emit
        self._ahead = self._measure()

    def look(self) -> None:
        """Report a jump since the last look."""
        before, self._ahead = self._ahead, self._measure()
        jump = self._ahead - before
        if abs(jump) >= NOTEWORTHY:
            self._emit(ClockJumped(seconds=jump / SECOND))

    def _measure(self) -> Micros:
        return self._clock.wall() - self._clock.since_boot()
