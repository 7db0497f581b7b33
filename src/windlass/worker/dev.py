"""A worker for development: it restarts when its sources change, and waits while they are broken.

The supervisor is restarted in the same process. It never loads the app (each new runner does), so no old code
stays.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Protocol

from windlass.core.events import Emit, Event, RunnerStarted
from windlass.errors import WindlassError
from windlass.worker.config import WorkerConfig
from windlass.worker.dev_server import DevServer
from windlass.worker.stop_signals import on_stop_signals
from windlass.worker.supervisor.supervisor import Supervisor

MAX_NAMED = 3
EVERY_SECONDS = 0.3
QUIET_SECONDS = 0.1
"""Nothing may change for this long before a change is reported: editors and git write several files in a row."""
MAX_UNREST = 5.0
SHARE = 20
"""At most 1/SHARE of the time is spent reading file times."""
PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages"})
Snapshot = dict[str, tuple[int, int, int]]


class Sources:
    """Every Python file in some folders, or files named one by one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._seen: Snapshot = {}
        self._pause = EVERY_SECONDS

    def remember(self) -> int:
        """Take a snapshot to compare with; returns the number of files."""
        self._seen = self._look()
        return len(self._seen)

    async def changed(self) -> list[str]:
        """The files that were changed, added or removed since `remember`, once no file changes any more."""
        now = self._seen
        while now == self._seen:
            await asyncio.sleep(self._pause)
            now = await asyncio.to_thread(self._look)
        now = await self._at_rest(now)
        return sorted(name for name in self._seen.keys() | now.keys() if self._seen.get(name) != now.get(name))

    async def _at_rest(self, now: Snapshot) -> Snapshot:
        end, before = time.monotonic() + MAX_UNREST, Snapshot()
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
                continue  # deleted between the listing and the read
            found[name] = (state.st_mtime_ns, state.st_size, state.st_ino)
        self._pause = max(EVERY_SECONDS, SHARE * (time.monotonic() - begun))
        return found

    def _files(self) -> Iterator[str]:
        for source in self._paths:
            if source.is_file():
                yield str(source)
            else:
                yield from _python_files(str(source))


def source_paths(app: str, here: Path) -> list[Path]:
    """Where the sources of `module:object` are: the current folder, and its package if that is elsewhere."""
    top = app.partition(":")[0].partition(".")[0]
    # Finding a top-level package imports nothing.
    spec = PathFinder.find_spec(top, [str(here), *sys.path])
    found = [] if spec is None else [*(spec.submodule_search_locations or []), spec.origin or ""]
    elsewhere = [Path(each).absolute() for each in found if each and Path(each).suffix in ("", ".py")]
    return [here, *(each for each in elsewhere if not each.is_relative_to(here))]


def _python_files(folder: str) -> Iterator[str]:
    """The Python files below a folder. Links to folders are not followed: they may lead in a circle."""
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        # A folder with this file is a virtual environment, whatever its name.
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name not in PASSED_OVER and entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


class Screen(Protocol):
    """The output for the developer."""

    def news(self, text: str) -> None:
        """Report an expected event."""

    def trouble(self, text: str) -> None:
        """Report that the app cannot be run as it is."""


class Dev:
    """One `windlass dev`, through all restarts of its worker."""

    def __init__(
        self, config: WorkerConfig, sources: Sources, emit: Emit, screen: Screen, server: DevServer | None = None
    ) -> None:
        self._server = server
        self._starting: asyncio.Task[None] | None = None
        self._config = config
        self._sources = sources
        self._emit = emit
        self._screen = screen
        self._stopping = asyncio.Event()
        self._supervisor: Supervisor | None = None

    async def run(self) -> int:
        """Run until stopped; returns the exit code."""
        on_stop_signals(self.stop)
        files = self._sources.remember()
        watched = "1 Python file" if files == 1 else f"{files} Python files"
        self._screen.news(f"{self._config.app}, watching {watched}; Ctrl-C ends it")
        if self._server is not None:
            self._screen.news(f"dashboard, logged in (the link works once): {self._server.link}")
            self._screen.news(f"REST at {self._server.address}/, token of this run: {self._server.token}")
        while not self._stopping.is_set():
            await self._live_once()
            # Before the app is loaded again: a later change is not part of it.
            self._sources.remember()
        return 0

    def stop(self) -> None:
        """The first call starts the drain, the second ends the worker."""
        self._stopping.set()
        if self._supervisor is not None:
            self._supervisor.stop()

    async def _live_once(self) -> None:
        """One worker, until a source changes or `stop` is called."""
        change = asyncio.create_task(self._sources.changed())
        supervisor = self._supervisor = Supervisor(self._config, self._heard)
        work = asyncio.create_task(supervisor.work())
        try:
            await asyncio.wait([work, change], return_when=asyncio.FIRST_COMPLETED)
            if change.done() and not self._stopping.is_set():
                self._announce_change(change)
                supervisor.stop()
            await self._outcome(work, change)
        finally:
            self._supervisor = None
            change.cancel()
            await self._stop_server()

    def _heard(self, event: Event) -> None:
        self._emit(event)
        # A runner has loaded the app and reached its store.
        if isinstance(event, RunnerStarted) and self._server is not None and self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._server.start())

    async def _stop_server(self) -> None:
        if self._server is not None and self._starting is not None:
            await self._starting
            await self._server.stop()
            self._starting = None

    async def _outcome(self, work: asyncio.Task[int], change: asyncio.Task[list[str]]) -> None:
        """How that worker ended; if its app cannot be loaded, wait for the next save."""
        try:
            await work
        except WindlassError as error:
            if self._stopping.is_set():
                return
            if change.done():
                return  # the next start shows whether the error persists
            self._screen.trouble(str(error))
            self._screen.news("waiting for the next save")
            stop = asyncio.create_task(self._stopping.wait())
            await asyncio.wait([change, stop], return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            if change.done():
                self._announce_change(change)

    def _announce_change(self, change: asyncio.Task[list[str]]) -> None:
        self._screen.news(f"{_named(change.result())} changed: starting again")


def _named(files: list[str]) -> str:
    """The changed files, relative to the current folder."""
    here = Path.cwd()
    names = [os.path.relpath(each, here) for each in files]
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
