"""Assertions about enqueued jobs, and their messages."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from windlass.client.app import App
from windlass.client.tasks.options import JobOptions
from windlass.client.tasks.task import Definition, Task
from windlass.core.codec import decode
from windlass.core.jobs.job import Job, NewJob
from windlass.core.moments import Duration, Micros, duration, show_duration, to_micros
from windlass.core.status import WAITING, Status
from windlass.errors import ConfigError, InvalidOption, InvalidPayload
from windlass.store.drive import running_loop

T = TypeVar("T")

_PAGE = 500
_MAX_SHOWN = 20
_MAX_SHOWN_LENGTH = 200

Wanted = Task[Any, Any, Any] | str | NewJob


def enqueued(app: App, wanted: Wanted | None = None, *, queue: str | None = None) -> list[Job]:
    """The waiting jobs, oldest first: all, or those of a task and a queue."""
    _check_app(app)
    type_ = None if wanted is None else _Terms.of(app, wanted, (), {}).type
    jobs = _ask(app, _all_jobs(app))
    return [job for job in jobs if _waits(job) and type_ in (None, job.type) and queue in (None, job.queue)]


def assert_enqueued(
    app: App,
    wanted: Wanted,
    /,
    *args: Any,
    count: int | None = None,
    queue: str | None = None,
    delay: Duration | None = None,
    **kwargs: Any,
) -> list[Job]:
    """A job of this task waits, with at least these arguments; returns the matching jobs, oldest first.

    `count` is their number, `delay` the time from the enqueue to the due time. `welcome.job(42)` in place of the task
    means exactly these arguments, also where one of them is named like an option here.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    terms = _Terms.of(app, wanted, args, kwargs, queue=queue, delay=delay)
    everything = _ask(app, _all_jobs(app))
    found = [job for job in everything if _waits(job) and terms.fit(job)]
    if count is None and not found:
        raise AssertionError(_message(app, f"{terms} is not enqueued", terms, everything))
    if count is not None and len(found) != count:
        raise AssertionError(
            _message(app, f"{terms} is enqueued {_times(len(found))}, not {_times(count)}", terms, everything)
        )
    return found


def assert_not_enqueued(
    app: App,
    wanted: Wanted,
    /,
    *args: Any,
    queue: str | None = None,
    delay: Duration | None = None,
    **kwargs: Any,
) -> None:
    """No job of this task waits, or none with these arguments."""
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    terms = _Terms.of(app, wanted, args, kwargs, queue=queue, delay=delay)
    everything = _ask(app, _all_jobs(app))
    if any(_waits(job) and terms.fit(job) for job in everything):
        raise AssertionError(_message(app, f"{terms} is enqueued, and should not be", terms, everything))


class _Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a match."""

    type: str
    payload: dict[str, Any]
    exact: bool = False
    """Whether the payload must be equal, or contained."""
    queue: str | None = None
    delay: int | None = None

    @staticmethod
    def of(
        app: App,
        wanted: Wanted,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        queue: str | None = None,
        delay: Duration | None = None,
    ) -> "_Terms":
        _check_app(app)
        micros = None if delay is None else duration(delay, "delay")
        if isinstance(wanted, NewJob):
            if args or kwargs:
                raise TypeError("the arguments are in the job already: task.job(...)")
            held = decode(wanted.payload)
            return _Terms(type=wanted.type, payload=held, exact=True, queue=queue, delay=micros)
        definition = _definition(app, wanted)
        held = _arguments(definition, args, kwargs)
        return _Terms(type=definition.type, payload=held, queue=queue, delay=micros)

    def fit(self, job: Job) -> bool:
        """Whether this job matches."""
        return job.type == self.type and not self.differences(job)

    def differences(self, job: Job) -> list[str]:
        """How a job of this type differs."""
        there: dict[str, Any] = job.payload if isinstance(job.payload, dict) else {}
        names = {**self.payload, **there} if self.exact else self.payload
        found = [
            f"{name} is {_cut(there, name)}, not {_cut(self.payload, name)}"
            for name in names
            if name not in there or name not in self.payload or there[name] != self.payload[name]
        ]
        if self.queue not in (None, job.queue):
            found.append(f"the queue is {job.queue}, not {self.queue}")
        if self.delay is not None and (due := _delay(job)) != self.delay:
            found.append(f"due after {show_duration(due)}, not {show_duration(self.delay)}")
        return found

    def __str__(self) -> str:
        open_end = [] if self.exact else ["…"]
        where = "" if self.queue is None else f" in queue {self.queue}"
        when = "" if self.delay is None else f", due after {show_duration(self.delay)}"
        return f"{self.type}({', '.join([*shown_arguments(self.payload), *open_end])}){where}{when}"


def _arguments(definition: Definition, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        return definition.signature.part(args, kwargs)
    except InvalidPayload as error:
        if error.field not in JobOptions.__annotations__:
            raise
        compared = "count, queue and delay are compared here; for others look at the jobs that are returned"
        raise InvalidOption(error.field, f"is not an argument of {definition.type}; {compared}") from None


def _check_app(app: App) -> None:
    """Refuse a call without the app: the task would be taken for the app."""
    if not isinstance(app, App):
        raise TypeError(f"the first argument is the app under test, not {app!r}")


def _ask(app: App, work: Coroutine[Any, Any, T]) -> T:
    """The answer of a coroutine, also on a running loop; else in this thread if the store can, because a caller's
    connection may need that.
    """
    return app._portal().run(work, waits=running_loop() is not None)


async def _all_jobs(app: App) -> list[Job]:
    """Every job, oldest first."""
    jobs: list[Job] = []
    cursor = None
    while True:
        page = await app.jobs.alist(limit=_PAGE, cursor=cursor)
        jobs += page.items
        cursor = page.next_cursor
        if cursor is None:
            return jobs[::-1]


def _waits(job: Job) -> bool:
    return job.status in WAITING


def _definition(app: App, wanted: Task[Any, Any, Any] | str) -> Definition:
    """The definition of a task of this app."""
    if isinstance(wanted, str):
        return app.registry.get(wanted)
    if not isinstance(wanted, Task):
        raise TypeError(f"give a task, its type, or task.job(...), not {wanted!r}; is it decorated with @app.task?")
    definition = wanted.definition
    if wanted.type not in app.registry or app.registry.get(wanted.type).function is not definition.function:
        raise ConfigError(f"{wanted!r} is no task of {app!r}: give the app in which it is registered")
    return definition


def _message(app: App, sentence: str, terms: _Terms, everything: list[Job]) -> str:
    waiting = [job for job in everything if _waits(job)]
    ran = [job for job in everything if not _waits(job) and terms.fit(job)]
    lines = [sentence, "Enqueued:" if waiting else "Nothing is enqueued."]
    # Jobs of the task first, with what is different about them.
    waiting.sort(key=lambda job: job.type != terms.type)
    lines += [f"  {_shown(job, terms)}" for job in waiting[:_MAX_SHOWN]]
    lines += [f"  … and {len(waiting) - _MAX_SHOWN} more"] if len(waiting) > _MAX_SHOWN else []
    lines += ["Ran already:"] * bool(ran)
    lines += [f"  {_shown(job)}" for job in ran[:_MAX_SHOWN]]
    if uncommitted := getattr(app._store_handle.connect(), "uncommitted", 0):
        lines.append(f"In transactions that have not committed: {_times(uncommitted).replace('time', 'enqueue')}")
    return "\n".join(lines)


def _shown(job: Job, terms: _Terms | None = None) -> str:
    call = ", ".join(shown_arguments(job.payload))
    when = f", due after {show_duration(_delay(job))}" if job.status is Status.SCHEDULED else ""
    other = terms.differences(job) if terms is not None and job.type == terms.type else []
    return f"{job.type}({call}) in queue {job.queue}, {job.status}{when}{': ' * bool(other)}{'; '.join(other)}"


def _delay(job: Job) -> Micros:
    """The time from the enqueue to the due time."""
    return to_micros(job.run_at) - to_micros(job.created_at)


def _cut(payload: dict[str, Any], name: str) -> str:
    return f"{payload[name]!r:.{_MAX_SHOWN_LENGTH}}" if name in payload else "not given"


def shown_arguments(payload: Any) -> list[str]:
    """The arguments of a call, as text."""
    if not isinstance(payload, dict):
        return [repr(payload)[:_MAX_SHOWN_LENGTH]]
    return [f"{name}={value!r:.{_MAX_SHOWN_LENGTH}}" for name, value in payload.items()]


def _times(number: int) -> str:
    return f"{number} time{'' if number == 1 else 's'}"
