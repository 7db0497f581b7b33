"""The app's hooks in a test: `run_all` acts as a runner, and errors of hooks are raised."""

from copy import copy

from windlass.client.app import App
from windlass.core.events import silent
from windlass.core.jobs.job import Job
from windlass.worker.handlers.hooks import Lifespan


class Life:
    """Calls hooks as a runner does, around one `run_all`, with a copy of the state."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._before = app.state
        self._lifespan = Lifespan(app, silent)

    async def start(self) -> None:
        self._app.state = copy(self._before)
        try:
            await self._lifespan.start()
        except BaseException:
            self._app.state = self._before
            raise

    async def dead(self, job: Job) -> None:
        for hook in self._app.hooks.dead:
            await self._lifespan.call(hook, job, self._app.state)

    async def stop(self) -> None:
        """All of them, even if one raises; then the first error is raised."""
        errors: list[Exception] = []
        try:
            for hook in reversed(self._app.hooks.stop):
                try:
                    await self._lifespan.call(hook, self._app.state)
                except Exception as error:
                    errors.append(error)
        finally:
            self._app.state = self._before
        if errors:
            raise errors[0]
