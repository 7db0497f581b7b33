"""The clocks of a store that has none of its own: wall time for due times, time since boot for leases."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from windlass.core.moments import Micros

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Two readings that must not be mixed."""

    @property
    def boot(self) -> str:
        """Which boot of the machine this is: readings of `since_boot` compare only within one."""

    def wall(self) -> Micros:
        """Microseconds since 1970. May jump; decides only when jobs are due."""

    def since_boot(self) -> Micros:
        """Microseconds since the machine started, sleep included. Never jumps; decides leases."""


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self.boot = _boot_id()

    def wall(self) -> Micros:
        """The wall clock."""
        return time.time_ns() // 1000

    def since_boot(self) -> Micros:
        """The boot clock."""
        return since_boot()


def since_boot() -> Micros:
    """Microseconds since boot, the same in every process of the machine."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1000


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
