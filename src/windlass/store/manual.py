"""A clock that moves only when a test says so."""

import time
from datetime import datetime, timedelta

from windlass.core.moments import SECOND, Micros, duration, to_datetime, to_micros


class ManualClock:
    """A store's clock, turned by hand: time stands still until it is moved.

    It begins now, or at a given moment. Only the store looks at it: when jobs are due, how old they are. Code that
    asks `datetime.now()` sees the machine's time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.boot = "the clock of a test"
        self._wall = time.time_ns() // 1000 if start is None else to_micros(start, "start")
        self._since_boot: Micros = 1_000 * SECOND

    def __repr__(self) -> str:
        return f"ManualClock({self.now.isoformat()})"

    @property
    def now(self) -> datetime:
        """The moment at which it stands."""
        return to_datetime(self._wall)

    def advance(
        self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> datetime:
        """Let time pass; the moment that it is then. Nothing runs by that: `run_all` does."""
        passed = duration(seconds, "seconds")
        for field, value, size in (("minutes", minutes, 60), ("hours", hours, 3600), ("days", days, 86_400)):
            passed += duration(value * size, field)
        return self._move(self._wall + passed)

    def set(self, moment: datetime) -> datetime:
        """Let it be this moment, later or earlier."""
        return self._move(to_micros(moment, "moment"))

    def _move(self, wall: Micros) -> datetime:
        # The boot clock never goes back, whatever somebody does to the wall clock.
        self._since_boot += max(0, wall - self._wall)
        self._wall = wall
        return self.now

    def wall(self) -> Micros:
        """Microseconds since 1970, as the store counts."""
        return self._wall

    def since_boot(self) -> Micros:
        """Microseconds since an imagined start of the machine."""
        return self._since_boot
