"""The app's hooks in a test: a run is a runner's life, and what a hook raises is the test's to see."""

from windlass.client.app import App
from windlass.client.state import State
from windlass.core.events import silent
from windlass.core.job import Job
from windlass.worker.lifespan import Lifespan


class Life:
    """Calls hooks as a runner does, round one `run_all`, with a state of its own."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._before = app.state
        self._lifespan = Lifespan(app, silent)

    async def start(self) -> None:
        """Before the first job."""
        self._app.state = State()
        try:
            await self._lifespan.start()
        except BaseException:
            self._app.state = self._before
            raise

    async def dead(self, job: Job) -> None:
        """A job has died."""
        for hook in self._app.hooks.dead:
            await self._lifespan.call(hook, job, self._app.state)

    async def stop(self) -> None:
        """After the last job."""
        try:
            for hook in reversed(self._app.hooks.stop):
                await self._lifespan.call(hook, self._app.state)
        finally:
            self._app.state = self._before
