"""Samples of processes, and the file that all samples go to: one line for each value."""

import csv
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tools.soak.verdict import Point

_PRIVATE = ("Private_Clean:", "Private_Dirty:")


def of_process(pid: int) -> dict[str, float]:
    """Memory, descriptors, threads, children; nothing if it is gone."""
    try:
        facts = _numbers(Path(f"/proc/{pid}/status"))
        memory = _numbers(Path(f"/proc/{pid}/smaps_rollup"))
        return {
            "rss_mb": memory["Rss:"] / 1000,
            "uss_mb": sum(memory[name] for name in _PRIVATE) / 1000,
            "fds": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": facts["Threads:"],
            "children": len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()),
        }
    except (OSError, KeyError):
        return {}


def _numbers(file: Path) -> dict[str, float]:
    """The lines whose second word is a number, by their first."""
    words = [line.split() for line in file.read_text().splitlines()]
    return {each[0]: float(each[1]) for each in words if len(each) > 1 and each[1].isdecimal()}


class Samples:
    """All values of a run, in memory and as lines `seconds,series,value`."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", buffering=1, newline="")
        self._csv = csv.writer(self._file)
        self._csv.writerow(("seconds", "series", "value"))
        self._begun = time.monotonic()
        self.series: dict[str, list[Point]] = defaultdict(list)

    def add(self, store: str, values: Mapping[str, float]) -> None:
        """The values of one store now."""
        at = time.monotonic() - self._begun
        for name, value in values.items():
            self.series[f"{store}/{name}"].append((at, value))
            self._csv.writerow((f"{at:.1f}", f"{store}/{name}", f"{value:g}"))

    def close(self) -> None:
        self._file.close()


def read(file: Path) -> dict[str, list[Point]]:
    """The samples of a run, or of one that still goes on."""
    series: dict[str, list[Point]] = defaultdict(list)
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if row["value"]:
                series[row["series"]].append((float(row["seconds"]), float(row["value"])))
    return series
