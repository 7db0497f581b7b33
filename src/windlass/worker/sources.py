"""The sources of an app: which files they are, and when they change.

By looking at them again and again, which works on every file system, in containers too, and needs no package (see
docs/decisions/0008). No code of the app is loaded for it.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

EVERY_SECONDS = 0.3
QUIET_SECONDS = 0.1
"""Nothing may change for so long before a change is told: editors and git write several files in a row."""
LONGEST_UNREST = 5.0
SHARE = 20
"""A look may take one part in so many of the time: where there are many files we look less often."""
PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages"})

Snapshot = dict[str, tuple[int, int, int]]


class Sources:
    """Every Python file in some folders, or files named one by one."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = list(places)
        self._seen: Snapshot = {}
        self._pause = EVERY_SECONDS

    def mark(self) -> int:
        """What is there now is known: how many files."""
        self._seen = self._look()
        return len(self._seen)

    async def changed(self) -> list[str]:
        """The files that changed, came or went since the mark, as soon as that has come to rest."""
        now = self._seen
        while now == self._seen:
            await asyncio.sleep(self._pause)
            now = await asyncio.to_thread(self._look)
        now = await self._at_rest(now)
        return sorted(name for name in self._seen.keys() | now.keys() if self._seen.get(name) != now.get(name))

    async def _at_rest(self, now: Snapshot) -> Snapshot:
        end, before = time.monotonic() + LONGEST_UNREST, Snapshot()
        while now != before and time.monotonic() < end:
            await asyncio.sleep(QUIET_SECONDS)
            before, now = now, await asyncio.to_thread(self._look)
        return now

    def _look(self) -> Snapshot:
        begun = time.monotonic()
        found: Snapshot = {}
        for name in self._files():
            try:
                state = os.stat(name)
            except OSError:
                continue  # gone between two looks
            found[name] = (state.st_mtime_ns, state.st_size, state.st_ino)
        self._pause = max(EVERY_SECONDS, SHARE * (time.monotonic() - begun))
        return found

    def _files(self) -> Iterator[str]:
        for place in self._places:
            if place.is_file():
                yield str(place)
            else:
                yield from _python_files(str(place))


def places_of(app: str, here: Path) -> list[Path]:
    """Where the sources of `module:object` are: the current folder, and its package if that is elsewhere."""
    top = app.partition(":")[0].partition(".")[0]
    # Finding a package by its own name runs nothing of it.
    spec = PathFinder.find_spec(top, [str(here), *sys.path])
    found = [] if spec is None else [*(spec.submodule_search_locations or []), spec.origin or ""]
    elsewhere = [Path(each).absolute() for each in found if each and Path(each).suffix in ("", ".py")]
    return [here, *(each for each in elsewhere if not each.is_relative_to(here))]


def _python_files(folder: str) -> Iterator[str]:
    """Links to folders are not followed: they may lead in a circle."""
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        # Whatever it is called, a folder with this file in it is a virtual environment.
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name not in PASSED_OVER and entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
