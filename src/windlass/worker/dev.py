"""A worker for developing: it starts anew when its sources change, and waits when they are broken.

The supervisor is restarted in this very process. It never loads the app (its runners do, each fresh), so nothing of
the old code is left behind.
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Protocol

from windlass.core.events import Emit
from windlass.errors import WindlassError
from windlass.worker.config import WorkerConfig
from windlass.worker.sources import Sources
from windlass.worker.supervisor import Supervisor

MOST_NAMED = 3


class Screen(Protocol):
    """Where the developer looks."""

    def news(self, text: str) -> None:
        """Something happened as it should."""

    def trouble(self, text: str) -> None:
        """The app cannot be run as it is."""


class Dev:
    """One `windlass dev`, through all restarts of its worker."""

    def __init__(self, config: WorkerConfig, sources: Sources, emit: Emit, screen: Screen) -> None:
        self._config = config
        self._sources = sources
        self._emit = emit
        self._screen = screen
        self._stopping = asyncio.Event()
        self._supervisor: Supervisor | None = None

    async def run(self) -> int:
        """Until stopped: the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        files = self._sources.mark()
        watched = "1 Python file" if files == 1 else f"{files} Python files"
        self._screen.news(f"{self._config.app}, watching {watched}; Ctrl-C ends it")
        while not self._stopping.is_set():
            await self._live_once()
            # Before the app is loaded again: what changes after this is not in it.
            self._sources.mark()
        return 0

    def stop(self) -> None:
        """The first call starts the drain, the second ends it."""
        self._stopping.set()
        if self._supervisor is not None:
            self._supervisor.stop()

    async def _live_once(self) -> None:
        """One worker, until a source changes or we are told to stop."""
        change = asyncio.create_task(self._sources.changed())
        supervisor = self._supervisor = Supervisor(self._config, self._emit)
        work = asyncio.create_task(supervisor.work())
        try:
            await asyncio.wait([work, change], return_when=asyncio.FIRST_COMPLETED)
            if change.done() and not self._stopping.is_set():
                self._tell(change)
                supervisor.stop()
            await self._outcome(work, change)
        finally:
            self._supervisor = None
            change.cancel()

    async def _outcome(self, work: asyncio.Task[int], change: asyncio.Task[list[str]]) -> None:
        """How that worker ended; if its app cannot be loaded, the next save may mend it."""
        try:
            await work
        except WindlassError as error:
            if self._stopping.is_set():
                return
            if change.done():
                return  # the next start tells whether it still is so
            self._screen.trouble(str(error))
            self._screen.news("waiting for the next save")
            stop = asyncio.create_task(self._stopping.wait())
            await asyncio.wait([change, stop], return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            if change.done():
                self._tell(change)

    def _tell(self, change: asyncio.Task[list[str]]) -> None:
        self._screen.news(f"{_named(change.result())} changed: starting again")


def _named(files: list[str]) -> str:
    """Which files, from here."""
    here = Path.cwd()
    names = [os.path.relpath(each, here) for each in files]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
