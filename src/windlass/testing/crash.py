"""The crash test: whether a handler that is killed at any step, and runs again, leaves the right state."""

import asyncio
import inspect
import linecache
import tempfile
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Required, TypedDict, TypeVar, Unpack, cast

import msgspec

from windlass.client.app import App
from windlass.client.runtime.portal import refuse_on_loop
from windlass.core.codec import decode
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob
from windlass.testing.expect import shown_arguments
from windlass.testing.killed import Ended, Rules, Step, copy_store, make_store, run_process

T = TypeVar("T")
Call = Callable[[], Any]

MAX_STEPS = 200
MAX_VISITS = 3
MAX_SOURCE = 60


class CrashStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the handler at which it was killed."""

    number: int
    when: str
    """Such as "before" or "while it awaits in" its line."""
    file: str
    line: int
    problem: str | None
    """The problem after the job had run again; None if there is none."""

    @property
    def source(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        where = f" {_short(self.file)}:{self.line}  {self.source:.{MAX_SOURCE}}" if self.file else ""
        return f"{self.when}{where}"


class CrashReport(msgspec.Struct, frozen=True, kw_only=True):
    """The steps at which the handler was killed, and what each left."""

    call: str
    steps: tuple[CrashStep, ...]

    @property
    def wrong(self) -> tuple[CrashStep, ...]:
        """The steps that left a wrong state."""
        return tuple(step for step in self.steps if step.problem is not None)

    def __str__(self) -> str:
        """A table of all steps."""
        lines = [
            f"{self.call} was killed at {len(self.steps)} steps and ran again: {len(self.wrong)} left a wrong state"
        ]
        shown = {step.number: str(step) for step in self.steps}
        width = max(map(len, shown.values()), default=0)
        for step in self.steps:
            problem = "right" if step.problem is None else f"WRONG  {step.problem}"
            lines.append(f"  {step.number:3}  killed {shown[step.number]:{width}}  {problem}".rstrip())
        return "\n".join(lines)


class NotIdempotent(AssertionError):
    """A handler that was killed, and ran again, left a wrong state; `report` has every step."""

    def __init__(self, report: CrashReport) -> None:
        super().__init__(str(report))
        self.report = report


class CrashOptions(TypedDict, total=False):
    """The options of `crash_test`.

    - `check`: raises, or returns False, if the state is wrong; may be `async def`
    - `reset`: brings the state back to the start; may be `async def`
    - `also`: modules whose lines are steps too
    - `visits`: how many times a step counts that is reached again and again (3)
    - `limit`: more steps are an error (200)
    """

    check: Required[Call]
    reset: Required[Call]
    also: Iterable[ModuleType]
    visits: int
    limit: int


def crash_test(app: App, job: NewJob, **options: Unpack[CrashOptions]) -> CrashReport:
    """Kill the handler at every step, run the job (`task.job(...)`) again, and check the state; raises NotIdempotent.

    For each step, `reset()` brings your state back to the start, a process runs the job and kills itself at that
    step by SIGKILL, another process runs the job again to its end, and `check()` looks. The steps of the first
    attempt are: before each line of the file in which the handler is defined; while it awaits, and when that is over;
    after each call of an `Effects`; and after the handler, before its outcome is stored.

    The processes are forked from this one and have a store of their own. What handlers change in memory is lost with
    them, so `check` has to look at a file, a database or an `Effects`.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    refuse_on_loop("crash_test")
    return _judged(_run_here(_CrashTest(app, job, **options).run()))


async def acrash_test(app: App, job: NewJob, **options: Unpack[CrashOptions]) -> CrashReport:
    """`crash_test` for asynchronous tests: an `async def` check or reset runs on this loop."""
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    return _judged(await _run_on_loop(_CrashTest(app, job, **options).run()))


class _Do(msgspec.Struct, frozen=True):
    """A call of the test; a call that forks blocks, and needs a thread without an event loop."""

    call: Call
    forks: bool = False


Calls = Generator[_Do, Any, T]


class _CrashTest:
    """The rounds of a crash test, one for each step."""

    def __init__(
        self,
        app: App,
        job: NewJob,
        *,
        check: Call,
        reset: Call,
        also: Iterable[ModuleType] = (),
        visits: int = MAX_VISITS,
        limit: int = MAX_STEPS,
    ) -> None:
        self._app = app
        self._job = job
        self._check = check
        self._reset = reset
        self._limit = limit
        function = inspect.unwrap(app.registry.get(job.type).function)
        files = {each for each in (inspect.getsourcefile(thing) for thing in (function, *also)) if each}
        self._rules = Rules(frozenset(files), visits)

    def run(self) -> Calls[CrashReport]:
        """Run once without a kill, then one round for each step."""
        with tempfile.TemporaryDirectory(prefix="windlass-crash-") as folder:
            yield _Do(partial(make_store, Path(folder)), forks=True)
            steps = yield from self._rounds(Path(folder))
        return CrashReport(call=_call(self._job), steps=tuple(steps))

    def _rounds(self, folder: Path) -> Calls[list[CrashStep]]:
        _, problem = yield from self._round(folder, 0)
        if problem is not None:
            raise AssertionError(
                f"the state is wrong even if nothing is killed: {problem}\nThe handler ran in a process of its own: "
                "what it changes in memory is not seen here, only files, databases and windlass.testing.Effects"
            )
        steps: list[CrashStep] = []
        for number in range(1, self._limit + 2):
            killed, problem = yield from self._round(folder, number)
            if killed is None:
                return steps
            where = {name: getattr(killed, name) for name in ("when", "file", "line")}
            steps.append(CrashStep(number=number, problem=problem, **where))
        raise RuntimeError(f"the handler has more than {self._limit} steps: crash_test(limit=...) allows more")

    def _round(self, store: Path, number: int) -> Calls[tuple[Step | None, str | None]]:
        """Kill the handler at one step, 0 for none; returns where that was, and what is wrong after the job has
        run again.
        """
        yield _Do(self._reset)
        folder = store / str(number)
        copy_store(store, folder)
        job = msgspec.structs.replace(self._job, id=new_id(), fresh="")
        run = partial(run_process, self._app, job, folder, self._rules)
        ended: Ended = yield _Do(partial(run, number or None), forks=True)
        killed = ended.killed
        if killed is not None:
            ended = yield _Do(partial(run, None), forks=True)
        problem = ended.problem
        if problem is None:
            problem = yield from self._verdict()
        return killed, problem

    def _verdict(self) -> Calls[str | None]:
        try:
            said = yield _Do(self._check)
        except Exception as error:
            text = (
                str(error) if isinstance(error, AssertionError) and str(error) else f"{type(error).__name__}: {error}"
            )
            return text.strip().removesuffix(":").splitlines()[0]
        if said is None or said is True:
            return None
        if said is False:
            return "check() returned False"
        raise TypeError(f"check() must return True, False or None, or raise; not {said!r:.100}")


def _run_here(calls: Calls[T]) -> T:
    """Make the calls one after the other, in this thread."""
    step, value = calls.send, None
    while True:
        try:
            do = step(value)
        except StopIteration as end:
            return cast(T, end.value)
        try:
            value, step = do.call(), calls.send
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
        except Exception as error:
            value, step = error, calls.throw


async def _run_on_loop(calls: Calls[T]) -> T:
    """Make the calls one after the other, on this loop."""
    step, value = calls.send, None
    while True:
        try:
            do = step(value)
        except StopIteration as end:
            return cast(T, end.value)
        try:
            value, step = (await asyncio.to_thread(do.call) if do.forks else do.call()), calls.send
            if inspect.isawaitable(value):
                value = await value
        except Exception as error:
            value, step = error, calls.throw


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _judged(report: CrashReport) -> CrashReport:
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    if report.wrong:
        raise NotIdempotent(report)
    return report


def _call(job: NewJob) -> str:
    return f"{job.type}({', '.join(shown_arguments(decode(job.payload)))})"


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name
