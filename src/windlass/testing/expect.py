"""Assertions about enqueued jobs, and their messages."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from windlass.client.app import App
from windlass.client.tasks.task import Task
from windlass.core.codec import decode
from windlass.core.jobs.job import Job, NewJob
from windlass.core.moments import Duration, duration, show_duration, to_micros
from windlass.core.status import WAITING, Status

T = TypeVar("T")

_PAGE = 500
_MAX_SHOWN = 20
_MAX_SHOWN_LENGTH = 200

Wanted = Task[Any, Any, Any] | str | NewJob


def enqueued(app: App, wanted: Wanted | None = None, *, queue: str | None = None) -> list[Job]:
    """The waiting jobs, oldest first: all, or those of a task and a queue."""
    jobs = _ask(app, _all_jobs(app))
    type_ = None if wanted is None else _Terms.of(app, wanted, (), {}).type
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
    __tracebackhide__ = True  # pytest shows the line of the test, not ours
    terms = _Terms.of(app, wanted, args, kwargs, queue=queue, delay=delay)
    everything = _ask(app, _all_jobs(app))
    found = [job for job in everything if _waits(job) and terms.fit(job)]
    if (not found) if count is None else len(found) != count:
        asked = "a job" if count is None else _number(count)
        there_are = "none does" if not found else _number(len(found))
        raise AssertionError(_told(f"{asked} should wait: {terms}; {there_are}", terms, everything))
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
    __tracebackhide__ = True  # pytest shows the line of the test, not ours
    terms = _Terms.of(app, wanted, args, kwargs, queue=queue, delay=delay)
    everything = _ask(app, _all_jobs(app))
    if any(_waits(job) and terms.fit(job) for job in everything):
        raise AssertionError(_told(f"no job should wait: {terms}", terms, everything))


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
        micros = None if delay is None else duration(delay, "delay")
        if isinstance(wanted, NewJob):
            if args or kwargs:
                raise TypeError("the arguments are in the job already: task.job(...)")
            held = decode(wanted.payload)
            return _Terms(type=wanted.type, payload=held, exact=True, queue=queue, delay=micros)
        definition = app.registry.get(wanted) if isinstance(wanted, str) else wanted.definition
        held = definition.signature.part(args, kwargs)
        return _Terms(type=definition.type, payload=held, queue=queue, delay=micros)

    def fit(self, job: Job) -> bool:
        """Whether this job matches."""
        return (
            job.type == self.type
            and self._fits(job.payload)
            and self.queue in (None, job.queue)
            and self.delay in (None, to_micros(job.run_at) - to_micros(job.created_at))
        )

    def _fits(self, payload: Any) -> bool:
        if self.exact:
            return bool(payload == self.payload)
        return all(name in payload and payload[name] == value for name, value in self.payload.items())

    def __str__(self) -> str:
        open_end = [] if self.exact else ["…"]
        where = "" if self.queue is None else f" in queue {self.queue}"
        when = "" if self.delay is None else f", due after {show_duration(self.delay)}"
        return f"{self.type}({', '.join([*_arguments(self.payload), *open_end])}){where}{when}"


def _ask(app: App, work: Coroutine[Any, Any, T]) -> T:
    """An immediate answer, also on a running loop: a store in memory does not suspend."""
    return app._portal().run(work, waits=True)


async def _all_jobs(app: App) -> list[Job]:
    """Every job, oldest first."""
    _ = app.clock  # refuses an app that is not under test
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


def _told(sentence: str, terms: _Terms, everything: list[Job]) -> str:
    waiting = [job for job in everything if _waits(job)]
    ran = [job for job in everything if not _waits(job) and terms.fit(job)]
    lines = [sentence, "What waits:" if waiting else "Nothing waits at all."]
    lines += [f"  {_shown(job)}" for job in waiting[:_MAX_SHOWN]]
    lines += [f"  … and {len(waiting) - _MAX_SHOWN} more"] if len(waiting) > _MAX_SHOWN else []
    lines += ["What has run already:"] * bool(ran)
    lines += [f"  {_shown(job)}" for job in ran[:_MAX_SHOWN]]
    return "\n".join(lines)


def _shown(job: Job) -> str:
    call = ", ".join(_arguments(job.payload))
    due = to_micros(job.run_at) - to_micros(job.created_at)
    when = f", due after {show_duration(due)}" if job.status is Status.SCHEDULED else ""
    return f"{job.type}({call}) in queue {job.queue}, {job.status}{when}"


def _arguments(payload: Any) -> list[str]:
    if not isinstance(payload, dict):
        return [repr(payload)[:_MAX_SHOWN_LENGTH]]
    return [f"{name}={value!r:.{_MAX_SHOWN_LENGTH}}" for name, value in payload.items()]


def _number(jobs: int) -> str:
    return f"{jobs} job{'' if jobs == 1 else 's'}"
