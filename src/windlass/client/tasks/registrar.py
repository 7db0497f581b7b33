"""The decorators that an app and a task set have in common."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from windlass.client.tasks.context import Context
from windlass.client.tasks.declarations import Declarations
from windlass.client.tasks.hooks import Hooks, hook_of
from windlass.client.tasks.options import TaskOptions
from windlass.client.tasks.task import ContextTask, Task
from windlass.core.jobs.job import NewJob
from windlass.core.schedules.schedule import ScheduleOptions

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=Task[Any, Any, Any])


class Registrar(ABC):
    """Registers tasks, hooks and schedules."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self._declared = Declarations()

    @abstractmethod
    def _register(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Task[Any, Any, Any]:
        """Make a task of a function and register it."""

    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], Awaitable[T]], /
    ) -> ContextTask[P, Awaitable[T], T]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], T], /) -> ContextTask[P, T, T]: ...
    @overload
    def task(self, function: Callable[P, Awaitable[T]], /) -> Task[P, Awaitable[T], T]: ...
    @overload
    def task(self, function: Callable[P, T], /) -> Task[P, T, T]: ...
    @overload
    def task(self, **options: Unpack[TaskOptions]) -> "Decorator": ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:  # type: ignore[misc]
        """Register a function as a task, plainly or with options (`@app.task(queue="mail")`)."""
        decorator = Decorator(self, options)
        return decorator if function is None else decorator(function)

    @overload
    def schedule(self, name: str, job: NewJob, /, **options: Unpack[ScheduleOptions]) -> None: ...
    @overload
    def schedule(
        self, cron: str | None = None, /, *, name: str | None = None, **options: Unpack[ScheduleOptions]
    ) -> Callable[[K], K]: ...
    def schedule(
        self, what: str | None = None, job: NewJob | None = None, /, *, name: str | None = None, **options: Any
    ) -> Any:
        """Declare a schedule: `schedule("daily", report.job(7), cron="0 9 * * 1-5", tz="Europe/Berlin")`, or
        `every=300`; or above a task without arguments, `@app.schedule("0 9 * * 1-5")`, named like the task.

        The first call to the store writes it, and workers do at their start; an operator's change wins. `catch_up`
        says which missed ticks run: "one" (the last of them), "all", "none". `overlap=False` skips a tick while the
        job before it has not ended. `jitter` delays each job by up to that time.
        """
        if job is None:
            return self._declared.on_task(what, name, options)
        return self._declared.add_job(what, job, options)

    def on_start(self, function: F, /) -> F:
        """Run a function when a process that runs handlers starts: `def start(state): state.pool = …`.

        Runners and the processes of `run_in="process"` call it before their first job. It takes the State or nothing.
        `async def` runs on the event loop of the handlers, `def` in one thread that all plain hooks share. Several
        run in order of registration. If one raises, the process does not start and reports the error.
        """
        self.hooks.start.append(hook_of("on_start", function, "state"))
        return function

    def on_stop(self, function: F, /) -> F:
        """Run a function when such a process stops: `async def stop(state): await state.pool.close()`.

        It runs after the drain, when the outcomes are written: in reverse order of registration, all of them even if
        one raises. Together they have the rest of the drain time, and at least 3 s. A process that is killed runs
        none: by a crash, a timeout of a handler in its own process, or a second signal.
        """
        self.hooks.stop.append(hook_of("on_stop", function, "state"))
        return function


class Decorator:
    """What `@app.task(...)` returns: it keeps the signature, without the Context."""

    def __init__(self, registrar: Registrar, options: Mapping[str, Any]) -> None:
        self._registrar = registrar
        self._options = options

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Awaitable[T]]
    ) -> ContextTask[P, Awaitable[T], T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T]) -> ContextTask[P, T, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[T]]) -> Task[P, Awaitable[T], T]: ...
    @overload
    def __call__(self, function: Callable[P, T]) -> Task[P, T, T]: ...
    def __call__(self, function: Callable[..., Any]) -> Task[Any, Any, Any]:
        return self._registrar._register(function, self._options)
