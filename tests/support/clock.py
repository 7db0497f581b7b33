"""A clock that moves only when a test says so."""

from windlass.core.moments import SECOND, Micros

START: Micros = 1_767_225_600 * SECOND
"""2026-01-01 00:00 UTC."""


class ManualClock:
    """windlass.store.clock.Clock, turned by hand."""

    def __init__(self) -> None:
        self.boot = "first boot"
        self._wall = START
        self._since_boot = 1_000 * SECOND

    def wall(self) -> Micros:
        return self._wall

    def since_boot(self) -> Micros:
        return self._since_boot

    def advance(self, micros: Micros) -> None:
        """Time passes, on both clocks."""
        assert micros >= 0, "time does not run backwards: that would be jump_wall"
        self._wall += micros
        self._since_boot += micros

    def jump_wall(self, micros: Micros) -> None:
        """The wall clock is set, forwards or back; no time passes."""
        self._wall += micros

    def reboot(self) -> None:
        """The machine starts anew: time since boot begins at zero, under a new boot id."""
        self.boot += "'"
        self._since_boot = SECOND


class OffsetClock:
    """Another clock, read with a constant error: that of one node of a cluster."""

    def __init__(self, clock: ManualClock, offset: Micros) -> None:
        self._clock = clock
        self._offset = offset

    @property
    def boot(self) -> str:
        return self._clock.boot

    def wall(self) -> Micros:
        return self._clock.wall() + self._offset

    def since_boot(self) -> Micros:
        return self._clock.since_boot()
