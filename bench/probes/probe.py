"""What only the runner itself can count, switched on by its environment and off the measured path of every other run.

Commits are counted by a hook of the driver, in a file that outlives the process. Profiles are taken of the event
loop's thread and of every thread that starts after it, and written again and again, since a runner ends hard.
"""

import cProfile
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import apsw

COMMITS = "WINDLASS_BENCH_COMMITS"
TRIPS = "WINDLASS_BENCH_TRIPS"
PROFILES = "WINDLASS_BENCH_PROFILES"
EVERY_SECONDS = 0.25
WIDTH = 20


def can_profile() -> bool:
    """From Python 3.12 on cProfile cannot tell threads apart."""
    return sys.version_info < (3, 12)


def attach() -> None:
    """Start the probes that the environment asks for."""
    if path := os.environ.get(COMMITS):
        count_commits(Path(path))
    if path := os.environ.get(PROFILES):
        profile_threads(Path(path))


def count_commits(path: Path) -> None:
    """Count every writing transaction of every connection opened from now on."""
    count = counter(path)

    def committed() -> bool:
        count()
        return False

    def opened(connection: apsw.Connection) -> None:
        connection.set_commit_hook(committed)

    apsw.connection_hooks.append(opened)


def counter(path: Path) -> Callable[[], None]:
    """A function that increments the number in a file, which outlives the process."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        os.pwrite(file, str(seen).rjust(WIDTH).encode(), 0)

    return count


def read_count(path: Path) -> int:
    """The number in that file."""
    return int(path.read_text() or 0) if path.exists() else 0


def profile_threads(folder: Path) -> None:
    """Profile this thread, and each that starts from now on, into a file per thread."""
    profiles = {"loop": cProfile.Profile()}

    def started(frame: FrameType, event: str, argument: Any) -> None:
        # The first event in a new thread: from here on cProfile takes its place.
        profile = profiles[threading.current_thread().name] = cProfile.Profile()
        profile.enable()

    threading.setprofile(started)
    _every(EVERY_SECONDS, lambda: _write(profiles, folder))
    profiles["loop"].enable()


def _write(profiles: dict[str, cProfile.Profile], folder: Path) -> None:
    for name, profile in list(profiles.items()):
        lines = [f"{entry.inlinetime:.6f}\t{entry.callcount}\t{_place(entry.code)}" for entry in profile.getstats()]
        unfinished = folder / f"{name}.part"
        unfinished.write_text("\n".join(lines))
        unfinished.replace(folder / f"{name}.profile")


def _place(code: Any) -> str:
    if isinstance(code, str):
        return code
    file = Path(code.co_filename)
    return f"{file.parent.name}/{file.name}:{code.co_firstlineno} {code.co_qualname}"


def _every(seconds: float, work: Callable[[], None]) -> None:
    """Call it periodically, in a thread that is not profiled."""
    pause = threading.Event()

    def repeat() -> None:
        sys.setprofile(None)
        while not pause.wait(seconds):
            work()

    threading.Thread(target=repeat, name="bench-probe", daemon=True).start()
