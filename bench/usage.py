"""A tree of processes by the kernel's figures: members, processor time and memory."""

import os
from pathlib import Path

import msgspec

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(msgspec.Struct, frozen=True):
    """Processor time of a process since its start, and its memory now."""

    loop: float
    """Seconds of its first thread, in which a runner has its event loop."""
    threads: float
    """Seconds of all other threads."""
    user: float
    system: float
    resident: int
    """Resident bytes."""

    @property
    def cpu(self) -> float:
        """Seconds in all."""
        return self.user + self.system


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents = {pid: _parent(pid) for pid in _processes()}
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def runners(root: int) -> list[int]:
    """The runners of a worker: its children that are started as such."""
    return [pid for pid in tree(root) if b"windlass.worker.runner" in _read(pid, "cmdline")]


def usage(pid: int) -> Usage | None:
    """The usage of a process; None if it has ended."""
    whole, memory = _times(_read(pid, "stat")), _read(pid, "statm").split()
    first = _times(_read(pid, f"task/{pid}/stat"))
    if whole is None or first is None or not memory:
        return None
    loop = sum(first)
    return Usage(loop, max(0.0, sum(whole) - loop), *whole, int(memory[1]) * PAGE)


def cpu_of_tree(root: int) -> float:
    """Processor seconds of a process and its live descendants."""
    return sum(each.cpu for each in map(usage, tree(root)) if each is not None)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int:
    fields = _fields(_read(pid, "stat"))
    return int(fields[1]) if fields else 0


def _times(stat: bytes) -> tuple[float, float] | None:
    fields = _fields(stat)
    return (int(fields[11]) / TICK, int(fields[12]) / TICK) if fields else None


def _fields(stat: bytes) -> list[bytes]:
    """Those after the name, which is in brackets and may contain anything."""
    return stat.rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it is gone
