"""The context of an attempt, for its handler."""

import asyncio
import math
import time
from collections.abc import Awaitable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

import msgspec

from windlass.client.handle import Handle
from windlass.client.runtime.portal import is_on_loop, refuse_on_loop
from windlass.client.tasks.hooks import State
from windlass.client.tasks.joint import own_connection
from windlass.client.tasks.link import Link
from windlass.client.tasks.own_group import OwnGroup
from windlass.core.control import Cancel
from windlass.core.jobs.job import Job, NewJob, Progress
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.text import cut, printable
from windlass.errors import InvalidOption, NotInJob

P = ParamSpec("P")
T = TypeVar("T")
if TYPE_CHECKING:  # a default, which `typing` has since 3.13
    from typing_extensions import TypeVar as TypeVarWithDefault

    S = TypeVarWithDefault("S", bound=State, default=State)
else:
    S = TypeVar("S", bound=State)

MAX_NOTE_LENGTH = 500
MAX_LINE_LENGTH = 1000
LOOK_EVERY = 0.25
"""Seconds between a sleeping handler's checks for cancellation."""


class Enqueuable(Protocol[P, T]):
    """A task that can make a job."""

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJob: ...

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]: ...


class Done:
    """What `ctx.progress(…)` returns in `def`: nothing is left to await."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class Context(Generic[S]):
    """Passed to a parameter annotated `Context`, or `Context[Services]` if your `state` is a `class Services(State)`.

    Progress and log lines are written in the background, at the latest with the attempt's outcome; the newest
    progress wins. In `async def` handlers `await` every call: an attempt that left one out fails with that reason.
    """

    def __init__(self, link: Link, *, awaits: bool = True) -> None:
        self._link = link
        self._awaits = awaits

    @contextmanager
    def _without_await(self) -> Iterator[None]:
        """For code that cannot await, such as a generator round an `async def` handler."""
        before, self._awaits = self._awaits, False
        try:
            yield
        finally:
            self._awaits = before

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        return self._link.job()

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; never used twice for one job."""
        return self._link.claimed.attempt

    @property
    def token(self) -> int:
        """The fencing token: pass it to the systems you write to, and let them refuse smaller ones."""
        return self._link.claimed.attempt

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop; a long handler checks this from time to time."""
        return self._link.cancelled

    @property
    def state(self) -> S:
        """The state that the `@app.on_start` hooks of this process filled."""
        return cast("S", self._link.home.state)

    @property
    def group(self) -> OwnGroup:
        """The group that this job is a member of: `ctx.group.add(load.job(2))` adds another member."""
        awaits = self._awaits and self._link.is_async
        return OwnGroup(self._link.home, self._link.claimed, self._link.added, awaits=awaits)

    def sleep(self, seconds: Duration) -> Awaitable[None]:
        """Sleep for any length of time: the worker renews its leases meanwhile.

        Blocks in `def`, is awaited in `async def`. Raises Cancel when the job is cancelled meanwhile, which ends it
        as cancelled. A stop of the worker does not wake it before the drain time is over.
        """
        end = time.monotonic() + duration(seconds, "seconds") / SECOND
        if self._link.is_async and is_on_loop():
            return _named(self._asleep(end), "sleep")
        while (left := self._left(end)) > 0:
            time.sleep(min(left, LOOK_EVERY))
        return Done()

    @overload
    def enqueue(self, what: NewJob, /) -> Handle[Any]: ...
    @overload
    def enqueue(self, what: Enqueuable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]: ...
    def enqueue(self, what: Any, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Enqueue a child of this job: `ctx.enqueue(task.job(1))`, or `ctx.enqueue(task, 1)`.

        For `def` handlers: when it returns, the child is stored. In `async def` it raises UseAsync, and
        `await ctx.aenqueue(…)` is the form. The child's `parent` is this job, unless it has another. A job that runs
        again enqueues its children again: an idempotency key prevents that.
        """
        refuse_on_loop("ctx.enqueue", "await ctx.aenqueue(…)")
        child = self._child(what, args, kwargs)
        return self._link.home._portal().run(self.aenqueue(child), here=own_connection(child) is not None)

    @overload
    async def aenqueue(self, what: NewJob, /) -> Handle[Any]: ...
    @overload
    async def aenqueue(self, what: Enqueuable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]: ...
    async def aenqueue(self, what: Any, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Enqueue a child of this job from an `async def` handler; see `enqueue`."""
        job, home = self._child(what, args, kwargs), self._link.home
        (child,) = await home._enqueue_jobs([job], [home._returns(job.type)])
        return child

    def _child(self, what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        job = what if isinstance(what, NewJob) else _made(what, args, kwargs)
        if isinstance(what, NewJob) and (args or kwargs):
            raise InvalidOption("enqueue", "takes a job without further arguments, or a task with its arguments")
        return job if job.parent is not None else msgspec.structs.replace(job, parent=self._link.claimed.id)

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> Awaitable[None]:
        """Report progress."""
        for name, value in (("done", done), ("total", 0 if total is None else total)):
            if not _is_number(value):
                raise InvalidOption(f"progress.{name}", f"must be a finite number, not {value!r:.100}")
        share = (_number(done), None if total is None else _number(total))
        self._link.progress(Progress(*share, None if note is None else _text(note, MAX_NOTE_LENGTH)))
        return self._done("progress")

    def log(self, text: str) -> Awaitable[None]:
        """Keep a line with the job: `windlass jobs show` shows the last 200."""
        self._link.log(_text(text, MAX_LINE_LENGTH))
        return self._done("log")

    def _done(self, verb: str) -> Awaitable[None]:
        """A coroutine in `async def`, so that Python notices a missing `await`."""
        return _named(self._nothing(), verb) if self._awaits and self._link.is_async and is_on_loop() else Done()

    async def _nothing(self) -> None:
        """No-op: the call is already made."""

    async def _asleep(self, end: float) -> None:
        while (left := self._left(end)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, LOOK_EVERY))

    def _left(self, end: float) -> float:
        if self._link.cancelled:
            raise Cancel("cancelled while it slept")
        return end - time.monotonic()


def _named(coroutine: Coroutine[Any, Any, None], verb: str) -> Coroutine[Any, Any, None]:
    """The coroutine, under the name of the verb that the handler called."""
    coroutine.__qualname__ = f"Context.{verb}"  # type: ignore[attr-defined]
    return coroutine


def _made(task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
    try:
        make = task.job
    except AttributeError:
        raise InvalidOption("enqueue", f"takes a task or a job (`task.job(…)`), not {type(task).__name__}") from None
    job: NewJob = make(*args, **kwargs)
    return job


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 2**63 and math.isfinite(value)


def _number(value: float) -> float:
    """A plain number: subclasses, such as those of numpy, are not JSON."""
    return int(value) if isinstance(value, int) else float(value)


def _text(text: object, limit: int) -> str:
    """A handler's text in a form that every store can keep and every terminal can show."""
    return cut(printable(cut(str(text), limit)), limit)


entered: ContextVar[Link] = ContextVar("windlass_job")
"""Set by a runner around each attempt. It follows `await`, tasks and `asyncio.to_thread`, not bare threads."""


def current_context() -> Context:
    """The context of the attempt that this code runs in; raises NotInJob outside a handler."""
    link = entered.get(None)
    if link is None:
        raise NotInJob
    return Context(link)


def current_job() -> Job:
    """The job whose handler this code runs in, as it was claimed; raises NotInJob outside a handler.

    It works on the event loop, in the threads and in the processes of a worker, in tasks that a handler starts and
    under `asyncio.to_thread`. A bare `threading.Thread` does not inherit it.
    """
    return current_context().job
