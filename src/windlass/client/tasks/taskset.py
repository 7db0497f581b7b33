"""Tasks of a module that does not import its app: no circular imports."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal
from windlass.client.tasks.link import Home
from windlass.client.tasks.registrar import Registrar
from windlass.client.tasks.registry import Registry, define
from windlass.client.tasks.task import Definition, Task, task_of
from windlass.core.codec import INLINE_LIMIT
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, NewJob
from windlass.errors import ConfigError
from windlass.store.contract import Store


class TaskSet(Registrar):
    """Tasks, hooks and schedules to be included in an app: `tasks = TaskSet()`, `@tasks.task`, `app.include(tasks)`.

    Its tasks can be enqueued once it is included; it belongs to one app. A prefix (`TaskSet(prefix="mail.")`) is put
    before the type of each task, not before given aliases and names of schedules.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self._prefix = prefix
        self._definitions: list[Definition] = []
        self._home: tuple[Home, Registry] | None = None
        caller = inspect.currentframe()
        caller = caller and caller.f_back
        self._made_at = f"{caller.f_code.co_filename}:{caller.f_lineno}" if caller else "unknown"

    def __repr__(self) -> str:
        return f"TaskSet({self._prefix!r}, {len(self._definitions)} tasks)"

    def _register(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Task[Any, Any, Any]:
        """Make a task of a function and register it."""
        definition = define(function, options, self._prefix)
        if self._home is not None:
            self._home[1].add(definition)
        self._definitions.append(definition)
        self._tasks[definition.type] = task_of(self, definition)
        return self._tasks[definition.type]

    def _join(self, home: Home, registry: Registry) -> None:
        """Join an app, with everything registered now and later."""
        if self._home is not None:
            raise ConfigError(f"the task set of {self._made_at} is included twice; it belongs to one app, once")
        for definition in self._definitions:
            registry.add(definition)
        self._home = (home, registry)

    def _app(self) -> Home:
        if self._home is None:
            raise ConfigError(f"the task set of {self._made_at} is in no app yet: enqueue after app.include(…)")
        return self._home[0]

    @property
    def payload_limit(self) -> int:
        """The limit of its app; for jobs made before there is one, the default."""
        return INLINE_LIMIT if self._home is None else self._home[0].payload_limit

    async def _ready(self) -> Store:
        return await self._app()._ready()

    async def _stored(self, ids: Sequence[JobId], connection: object = None) -> list[Job | None]:
        return await self._app()._stored(ids, connection)

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]:
        return await self._app()._enqueue_jobs(jobs, returns, connection)

    def _portal(self) -> Portal:
        return self._app()._portal()
