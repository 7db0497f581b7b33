"""The sandbox: an app that is there already, with a store in memory for as long as a test takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Unpack

from windlass.client.app import App
from windlass.client.berth import berth_in_memory
from windlass.store.manual import ManualClock
from windlass.testing.hand import RunOptions
from windlass.testing.report import Report
from windlass.testing.run import arun_all, run_all


class Sandbox:
    """An app under test, and its time."""

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
    """Until it is left, the app's jobs go to an empty store in memory, and its time stands still.

    The app's own store is neither opened nor touched. Whatever was handed in meanwhile is gone afterwards.
    """
    before, here = app._berth, berth_in_memory(clock)
    app._berth = here
    try:
        yield Sandbox(app)
    finally:
        app._berth = before
        app._portal().run(here.close(), waits=True)
