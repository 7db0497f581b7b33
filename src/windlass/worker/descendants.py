"""A process and all that came of it, to be ended together."""

import contextlib
import os
import signal
import time
from pathlib import Path

MOST = 10_000
MOST_ROUNDS = 100


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on, as far as the system tells (Linux)."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < MOST:
        for child in _children(waiting.pop()):
            found.append(child)
            waiting.append(child)
    return found


def end_tree(pid: int) -> None:
    """Kill a process, its group and its descendants, also those that have left the group."""
    others = descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for each in [pid, *others]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def end_strays(mark: str) -> None:
    """Kill whatever has this in the environment that it was started with: also what nobody is the parent of."""
    wanted = mark.encode()
    # Again until there is none: one may have started another while we looked.
    for _ in range(MOST_ROUNDS):
        found = [pid for pid in _processes() if wanted in _environment(pid)]
        if not found:
            return
        for each in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(0.005)


def memory(pid: int) -> int:
    """Bytes of memory in use, or 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children += [int(word) for word in (thread / "children").read_text().split()]
    return children


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []  # not Linux


def _environment(pid: int) -> list[bytes]:
    """Empty if the process is gone (a zombie too) or not ours to look at."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
