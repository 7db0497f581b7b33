"""What the code of an app declares: settings of queues, and schedules."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from windlass.client.tasks.joint import refuse_connection
from windlass.client.tasks.task import Task
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import NewJob
from windlass.core.names import check_name
from windlass.core.schedules.schedule import ScheduleSettings, merge, settings
from windlass.errors import ConfigError, InvalidOption, InvalidPayload
from windlass.store.contract import Store

K = TypeVar("K", bound=Task[Any, Any, Any])


class Declarations:
    """All declarations of one app. The `version` changes with each addition."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueSettings] = {}
        self.schedules: dict[str, ScheduleSettings] = {}
        self.version = 0

    @property
    def queue_names(self) -> list[str]:
        jobs = [each.job for each in self.schedules.values()]
        return [*self.queues, *(job.queue for job in jobs if job is not None)]

    def add_queue(self, name: str, said: QueueSettings) -> None:
        """Declare a queue; once each."""
        if check_name(name, "queue") in self.queues:
            raise ConfigError(f"queue {name!r} is declared twice")
        self.queues[name] = said
        self.version += 1

    def add_schedule(self, name: str, said: ScheduleSettings) -> None:
        """Declare a complete schedule; once each."""
        merge(said, ScheduleSettings())
        if check_name(name, "schedule") in self.schedules:
            raise ConfigError(f"schedule {name!r} is declared twice; give one of them another name")
        self.schedules[name] = said
        self.version += 1

    def add_job(self, name: str | None, job: NewJob, options: Mapping[str, Any]) -> None:
        """Declare a schedule whose job is given."""
        refuse_connection(job)
        self.add_schedule(check_name(name, "schedule"), settings(job, **options))

    def absorb(self, others: "Declarations") -> None:
        """Take over another app's or set's declarations."""
        for queue, said in others.queues.items():
            self.add_queue(queue, said)
        for name, wanted in others.schedules.items():
            self.add_schedule(name, wanted)

    def on_task(self, cron: str | None, name: str | None, options: Mapping[str, Any]) -> Callable[[K], K]:
        """A decorator that declares a schedule of a task without arguments, named after the task's type."""
        if cron is not None and ("cron" in options or ("every" in options and len(str(cron).split()) == 1)):
            form = "app.schedule(name, task.job(...), cron=...)"
            raise InvalidOption("job", f"is missing: {form}; above a task a name is given as name=")
        times = options if cron is None else {"cron": cron, **options}
        settings(**times)  # so that the error is raised by this call, not when the function is decorated

        def declare(task: K) -> K:
            if not isinstance(task, Task):
                raise ConfigError(
                    f"@app.schedule goes above @app.task: it takes a task, not {type(task).__name__} "
                    f"{getattr(task, '__qualname__', '')}".rstrip()
                )
            self.add_schedule(task.type if name is None else name, settings(_plain_job(task), **times))
            return task

        return declare

    async def write(self, store: Store) -> int:
        """Write all declarations; returns the written version."""
        version = self.version
        await store.queues.declare(dict(self.queues))
        await store.schedules.declare(dict(self.schedules))
        return version


def _plain_job(task: Task[Any, Any, Any]) -> Any:
    refuse_connection(task)
    try:
        return task.job()
    except InvalidPayload as error:
        say = f"app.schedule(name, {task.__name__}.job(...), cron=...)"
        raise InvalidPayload(error.field, f"{error.problem}; to give a schedule's job arguments: {say}") from None
