"""What a handler may know and say about the attempt it is in."""

import asyncio
import math
import time
from collections.abc import Coroutine, Generator
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.berth import Berth
from windlass.client.blocking import Portal
from windlass.client.handle import ChildHandle, Handle
from windlass.client.state import State
from windlass.core.control import Cancel
from windlass.core.job import Claimed, Job, NewJob, Progress
from windlass.core.moments import SECOND, duration
from windlass.core.text import cut, printable
from windlass.errors import InvalidOption
from windlass.store.contract import Store

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_NOTE = 500
LONGEST_LINE = 1000
LOOK_EVERY = 0.25
"""Seconds after which a sleeping handler looks whether it is still wanted."""


class Home(Protocol):
    """The app, as a handler needs it."""

    @property
    def state(self) -> State: ...

    @property
    def payload_limit(self) -> int: ...

    def offload(self) -> Offload | None: ...

    async def _ready(self) -> Store: ...

    @property
    def _berth(self) -> Berth: ...

    def _portal(self) -> Portal: ...

    def _returns(self, type_: str) -> Any: ...

    async def _hand_in(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...


class Link(Protocol):
    """The handler's line to its runner."""

    @property
    def claimed(self) -> Claimed: ...

    @property
    def is_async(self) -> bool: ...

    @property
    def home(self) -> Home: ...

    @property
    def cancelled(self) -> bool: ...

    def job(self) -> Job: ...

    def progress(self, progress: Progress) -> None: ...

    def log(self, text: str) -> None: ...


class Enqueuable(Protocol[P, T]):
    """A task, as far as making a job of it goes."""

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJob: ...

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]: ...


class Said:
    """Awaitable in `async def` (`await ctx.progress(…)`), and done already in `def` (`ctx.progress(…)`)."""

    def __init__(self, rest: Coroutine[Any, Any, None] | None = None) -> None:
        self._rest = rest

    def __await__(self) -> Generator[Any, None, None]:
        rest, self._rest = self._rest, None
        if rest is not None:
            yield from rest.__await__()


class Context:
    """Passed to a parameter annotated `Context`.

    Progress and log lines are written in the background, at the latest with the attempt's outcome; the newest
    progress wins.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def job(self) -> Job:
        """The job, as it was when it was claimed."""
        return self._link.job()

    @property
    def attempt(self) -> int:
        """The number of this execution, from 1; never used twice for one job."""
        return self._link.claimed.attempt

    @property
    def token(self) -> int:
        """The fencing token: give it to whatever you write to, and let it refuse smaller ones."""
        return self._link.claimed.attempt

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked this job to stop; a long handler looks now and then."""
        return self._link.cancelled

    @property
    def state(self) -> State:
        """What the `@app.on_start` hooks of this process made."""
        return self._link.home.state

    def sleep(self, seconds: float | timedelta) -> Said:
        """Sleep, for as long as anybody likes: a worker renews its leases whatever its handlers do.

        Blocks in `def`, is awaited in `async def`. Raises Cancel when somebody cancels the job meanwhile, which ends
        it as cancelled. A stop of the worker does not wake it up before the drain time is over.
        """
        end = time.monotonic() + duration(seconds, "seconds") / SECOND
        if self._link.is_async:
            return Said(self._asleep(end))
        while (left := self._left(end)) > 0:
            time.sleep(min(left, LOOK_EVERY))
        return Said()

    @overload
    def enqueue(self, what: NewJob, /) -> ChildHandle[Any]: ...
    @overload
    def enqueue(self, what: Enqueuable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> ChildHandle[T]: ...
    def enqueue(self, what: Any, /, *args: Any, **kwargs: Any) -> ChildHandle[Any]:
        """Hand in a child of this job: `ctx.enqueue(task.job(1))`, or `ctx.enqueue(task, 1)`.

        Awaited in `async def`, done when it returns in `def`. The child's `parent` is this job, unless it was given
        another. A job that runs again hands its children in again: an idempotency key prevents that.
        """
        job = what if isinstance(what, NewJob) else _made(what, args, kwargs)
        if isinstance(what, NewJob) and (args or kwargs):
            raise InvalidOption("enqueue", "takes a job without further arguments, or a task with its arguments")
        if job.parent is None:
            job = msgspec.structs.replace(job, parent=self._link.claimed.id)
        home = self._link.home
        returns = home._returns(job.type)
        child: ChildHandle[Any] = ChildHandle(home, job.id, False, returns, home._hand_in([job], [returns]))
        if not self._link.is_async:
            home._portal().run(child._handed_in())
        return child

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> Said:
        """Say how far the work is."""
        for name, value in (("done", done), ("total", 0 if total is None else total)):
            if not _is_number(value):
                raise InvalidOption(f"progress.{name}", f"must be a finite number, not {value!r:.100}")
        share = (_number(done), None if total is None else _number(total))
        self._link.progress(Progress(*share, None if note is None else _text(note, LONGEST_NOTE)))
        return Said()

    def log(self, text: str) -> Said:
        """Keep a line with the job: the last 200 are shown by `windlass jobs show`."""
        self._link.log(_text(text, LONGEST_LINE))
        return Said()

    async def _asleep(self, end: float) -> None:
        while (left := self._left(end)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, LOOK_EVERY))

    def _left(self, end: float) -> float:
        if self._link.cancelled:
            raise Cancel("cancelled while it slept")
        return end - time.monotonic()


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
    """Whatever a handler says, as text that every store can keep and every terminal can show."""
    return cut(printable(cut(str(text), limit)), limit)
