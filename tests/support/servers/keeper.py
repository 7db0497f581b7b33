"""Ends the servers of a test run that can no longer do so itself, and removes their folder.

A process of its own, started as `python keeper.py FOLDER` with the folder's lock file as its input. The run holds
that lock as long as it lives, however it ends. Only the standard library: nothing of the run is needed here.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from pathlib import Path

PATIENCE = 10.0
"""Seconds that servers have to end by themselves: only then do they give their shared memory back."""


def clear(folder: Path) -> None:
    """End every server of a folder, then remove it."""
    end = time.monotonic() + PATIENCE
    number = signal.SIGQUIT  # for PostgreSQL and PgBouncer alike: at once, but tidily
    while pids := servers_in(folder):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        number = signal.SIGKILL if time.monotonic() > end else signal.SIGQUIT
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


def servers_in(folder: Path) -> list[int]:
    """The processes that work in a folder: servers stay in their own. Where this cannot be seen, their pid files."""
    if Path("/proc/self/cwd").exists():
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal() and _in(entry, folder)]
    written = [_first_line(path) for path in folder.glob("**/*.pid")]
    return [int(line) for line in written if line.isdecimal() and _exists(int(line))]


def _in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder) and " Z " not in (process / "stat").read_text()
    except OSError:
        return False  # it is gone, or not ours to look at


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    fcntl.flock(sys.stdin, fcntl.LOCK_EX)
    clear(Path(sys.argv[1]))
