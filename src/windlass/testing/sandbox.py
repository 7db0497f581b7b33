"""The sandbox: an existing app with a store in memory for the length of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Unpack

from windlass.client.app import App
from windlass.client.runtime.store_handle import memory_handle
from windlass.store.clock import ManualClock
from windlass.testing.inline_runner import RunOptions
from windlass.testing.report import Report
from windlass.testing.run import arun_all, run_all


class Sandbox:
    """An app under test, and its clock."""

    def __init__(self, app: App) -> None:
        self.app = app

    @property
    def clock(self) -> ManualClock:
        """The app's clock, which stands still until it is moved."""
        return self.app.clock

    def run_all(self, **options: Unpack[RunOptions]) -> Report:
        """`windlass.testing.run_all` with this app."""
        return run_all(self.app, **options)

    async def arun_all(self, **options: Unpack[RunOptions]) -> Report:
        """`windlass.testing.arun_all` with this app."""
        return await arun_all(self.app, **options)


@contextmanager
def sandbox(app: App, clock: ManualClock | None = None) -> Iterator[Sandbox]:
    """Inside the context, the app uses an empty store in memory, and its clock stands still.

    The app's own store is neither opened nor touched. All jobs are dropped at the end.
    """
    before, here = app._store_handle, memory_handle(clock)
    app._store_handle = here
    try:
        yield Sandbox(app)
    finally:
        app._store_handle = before
        app._portal().run(here.close(), waits=True)
