"""The app's hooks in a test: `run_all` acts as a runner, and errors of hooks are raised."""

from windlass.client.app import App
from windlass.client.tasks.hooks import State
from windlass.core.events import silent
from windlass.core.jobs.job import Job
from windlass.worker.handlers.hooks import Lifespan


class Life:
    """Calls hooks as a runner does, around one `run_all`, with its own state."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._before = app.state
        self._lifespan = Lifespan(app, silent)

    async def start(self) -> None:
        self._app.state = State()
        try:
            await self._lifespan.start()
        except BaseException:
            self._app.state = self._before
            raise

    async def dead(self, job: Job) -> None:
        for hook in self._app.hooks.dead:
            await self._lifespan.call(hook, job, self._app.state)

    async def stop(self) -> None:
        try:
            for hook in reversed(self._app.hooks.stop):
                await self._lifespan.call(hook, self._app.state)
        finally:
            self._app.state = self._before
