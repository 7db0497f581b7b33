"""Clocks for a store that has none: wall time and time since boot. `ManualClock` is for tests."""

import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Protocol

from windlass.core.moments import SECOND, Duration, Micros, duration, to_datetime, to_micros

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OFFSETS = Path("/proc/self/timens_offsets")


class Clock(Protocol):
    """Two readings that must not be mixed."""

    @property
    def boot(self) -> str:
        """The id of the machine's boot: readings of `since_boot` compare only within one."""

    def wall(self) -> Micros:
        """Microseconds since 1970. May jump; used only for due times."""

    def since_boot(self) -> Micros:
        """Microseconds since boot, including sleep. Never jumps; used for leases."""


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self.boot = _boot_id()

    def wall(self) -> Micros:
        return time.time_ns() // 1000

    def since_boot(self) -> Micros:
        return since_boot()


def since_boot() -> Micros:
    """Microseconds since boot, the same in every process of the machine, whatever its time namespace."""
    return (time.clock_gettime_ns(_BOOT_CLOCK) - _NAMESPACE_OFFSET) // 1000


def namespace_offset(offsets: Path = _OFFSETS) -> int:
    """Nanoseconds by which the boot clock of this time namespace (Linux) is ahead of the machine's."""
    try:
        lines = [line.split() for line in offsets.read_text().splitlines()]
    except OSError:
        return 0  # no time namespaces here
    # boottime      1000000         0
    return sum(int(line[1]) * 10**9 + int(line[2]) for line in lines if len(line) == 3 and line[0] == "boottime")


_NAMESPACE_OFFSET = namespace_offset()


def _boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text().strip()
    if sys.platform == "darwin":
        answer = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=True
        )
        return answer.stdout.strip()
    return "unknown"


class ManualClock:
    """A store's clock that changes only when a test moves it.

    It starts now, or at a given moment. Only the store uses it: for due times and ages. Code that calls
    `datetime.now()` sees the machine's time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.boot = "the clock of a test"
        self._wall = time.time_ns() // 1000 if start is None else to_micros(start, "start")
        self._since_boot: Micros = 1_000 * SECOND

    def __repr__(self) -> str:
        return f"ManualClock({self.now.isoformat()})"

    @property
    def now(self) -> datetime:
        """The current moment of this clock."""
        return to_datetime(self._wall)

    def advance(self, seconds: Duration = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
        """Let time pass; returns the new moment. This runs no job: `run_all` does."""
        passed = duration(seconds, "seconds")
        for field, value, size in (("minutes", minutes, 60), ("hours", hours, 3600), ("days", days, 86_400)):
            passed += duration(value * size, field)
        return self._move(self._wall + passed)

    def set(self, moment: datetime) -> datetime:
        """Set it to this moment, later or earlier."""
        return self._move(to_micros(moment, "moment"))

    def _move(self, wall: Micros) -> datetime:
        # The boot clock never goes back.
        self._since_boot += max(0, wall - self._wall)
        self._wall = wall
        return self.now

    def wall(self) -> Micros:
        return self._wall

    def since_boot(self) -> Micros:
        return self._since_boot
