"""The machine of the figures: without it they mean nothing."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import msgspec


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, its state before the start, and what was installed."""

    when: str
    cpu: str
    cores: int
    system: str
    python: str
    load: tuple[float, float, float]
    """Load averages over 1, 5 and 15 minutes, before the start."""
    store: dict[str, str]
    """Facts about the store: versions, file system."""

    @property
    def busy(self) -> bool:
        """Whether other processes were busy here: then the figures are lower than on an idle machine."""
        return self.load[0] > 0.5


def describe_machine(store: dict[str, str]) -> Machine:
    """Describe this machine and its load."""
    return Machine(
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=os.getloadavg(),
        store=store,
    )


def _cpu() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
