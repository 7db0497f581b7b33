"""Middleware goes round every attempt, and no outcome is lost in it by accident."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest

from tests.services.parts import claimed, one_work
from windlass import App, Cancel, ConfigError, Context, Dead, Retry, Snooze
from windlass.core.jobs.outcome import Done, Outcome, Raised, Requeued
from windlass.worker.handlers.attempt import run_async, run_sync
from windlass.worker.handlers.work import Halt

KINDS = ["async", "def"]
FORMS = ["generator", "call_next"]
Steps = Generator[None, Any, Any]
Before = Callable[[Context], None]
After = Callable[[Any], Any]


@pytest.fixture
def app() -> App:
    """Never opened."""
    return App("sqlite:///never-opened.db")


def task(app: App, kind: str, body: Callable[[int], Any], type_: str = "t") -> None:
    """A task of this kind."""

    async def handle_async(number: int) -> Any:
        return body(number)

    def handle_sync(number: int) -> Any:
        return body(number)

    app.task(type=type_)(handle_async if kind == "async" else handle_sync)


async def attempt(app: App, number: int = 1) -> Outcome:
    work = one_work(app, claimed(type="t", payload=f'{{"number":{number}}}'))
    return await run_async(work) if work.definition.is_async else run_sync(work)


def surround(app: App, kind: str, form: str, *, before: Before | None = None, after: After | None = None) -> None:
    """A middleware of this form that does something before, and returns something after."""

    def steps(ctx: Context) -> Steps:
        if before is not None:
            before(ctx)
        result = yield
        return None if after is None else after(result)

    async def around_async(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        if before is not None:
            before(ctx)
        result = await call_next()
        return None if after is None else after(result)

    def around_sync(ctx: Context, call_next: Callable[[], Any]) -> Any:
        if before is not None:
            before(ctx)
        result = call_next()
        return None if after is None else after(result)

    around: Callable[..., Any] = around_async if kind == "async" else around_sync
    app.middleware(steps if form == "generator" else around)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
async def test_it_sees_the_job_and_the_result(app: App, kind: str, form: str) -> None:
    seen: list[Any] = []
    surround(app, kind, form, before=lambda ctx: seen.append((ctx.job.type, ctx.attempt)), after=seen.append)
    task(app, kind, lambda number: 2 * number)
    assert await attempt(app, 4) == Done("8")
    assert seen == [("t", 1), 8]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
async def test_what_it_returns_is_the_result(app: App, kind: str, form: str) -> None:
    surround(app, kind, form, after=lambda result: result + 1)
    task(app, kind, lambda number: number)
    assert await attempt(app) == Done("2")


@pytest.mark.parametrize("kind", KINDS)
async def test_the_first_is_the_outermost(app: App, kind: str) -> None:
    said: list[str] = []

    def named(name: str, form: str) -> None:
        surround(app, kind, form, before=lambda _: said.append(name), after=lambda _: said.append(f"{name} again"))

    named("first", "generator")
    named("second", "call_next")
    named("third", "generator")
    task(app, kind, lambda _: said.append("handler"))
    assert await attempt(app) == Done("null")
    assert said == ["first", "second", "third", "handler", "third again", "second again", "first again"]


@pytest.mark.parametrize("decision", [Retry(after=5), Snooze(5), Cancel("no"), Dead("no"), ValueError("no")])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
async def test_it_may_decide_instead_of_the_handler(app: App, kind: str, form: str, decision: Exception) -> None:
    ran: list[int] = []

    def refuse(_: Context) -> None:
        raise decision

    surround(app, kind, form, before=refuse)
    task(app, kind, ran.append)
    outcome = await attempt(app)
    assert isinstance(outcome, Raised)
    assert outcome.error is decision
    assert ran == []


def fail(_: int) -> None:
    raise ValueError("broken") from KeyError("cause")


@pytest.mark.parametrize("returned", [None, "repaired"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_is_raised_unless_a_value_is_returned(app: App, kind: str, form: str, returned: Any) -> None:
    seen: list[BaseException] = []

    def steps(ctx: Context) -> Steps:
        try:
            yield
        except ValueError as error:
            seen.append(error)
        return returned

    async def around_async(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call_next()
        except ValueError as error:
            seen.append(error)
        return returned

    def around_sync(ctx: Context, call_next: Callable[[], Any]) -> Any:
        try:
            return call_next()
        except ValueError as error:
            seen.append(error)
        return returned

    around: Callable[..., Any] = around_async if kind == "async" else around_sync
    app.middleware(steps if form == "generator" else around)
    task(app, kind, fail)
    outcome = await attempt(app)
    assert len(seen) == 1
    if returned is not None:
        assert outcome == Done('"repaired"')
        return
    assert isinstance(outcome, Raised)
    assert outcome.error is seen[0]
    assert isinstance(outcome.error.__cause__, KeyError)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_traceback_shows_none_of_our_own_frames(app: App, kind: str) -> None:
    surround(app, kind, "generator")
    surround(app, kind, "call_next")
    task(app, kind, fail)
    outcome = await attempt(app)
    assert isinstance(outcome, Raised)
    assert outcome.report.traceback is not None
    assert "in fail" in outcome.report.traceback
    assert "call_next()" in outcome.report.traceback
    assert "windlass/client" not in outcome.report.traceback


def forgets(ctx: Context, call_next: Callable[[], Any]) -> None:
    """Never calls it."""


async def aforgets(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> None:
    """Never calls it."""


def forgets_too(ctx: Context) -> Steps:
    if ctx.attempt > 1:
        yield


async def aforgets_await(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    return call_next()


def twice(ctx: Context) -> Steps:
    yield
    yield


MISTAKES = [
    ("def", forgets, "without calling call_next"),
    ("async", aforgets, "without calling call_next"),
    ("def", forgets_too, "ended before its `yield`"),
    ("async", forgets_too, "ended before its `yield`"),
    ("async", aforgets_await, "return await call_next"),
    ("def", twice, "yields twice"),
    ("async", twice, "yields twice"),
]


@pytest.mark.parametrize(("kind", "mistake", "said"), MISTAKES)
async def test_a_mistake_in_it_is_a_failure_that_says_so(
    app: App, kind: str, mistake: Callable[..., Any], said: str
) -> None:
    app.middleware(mistake)
    task(app, kind, lambda number: number)
    outcome = await attempt(app)
    assert isinstance(outcome, Raised)
    assert said in outcome.report.message
    assert f"test_middleware.py:{mistake.__code__.co_firstlineno}" in outcome.report.message


async def test_a_value_before_the_yield_ends_the_attempt_without_the_handler(app: App) -> None:
    ran: list[int] = []

    @app.middleware
    def known(ctx: Context) -> Steps:
        if ctx.attempt == 1:
            return "known already"
        yield

    task(app, "def", ran.append)
    assert await attempt(app) == Done('"known already"')
    assert ran == []


async def test_it_may_call_next_again_and_the_last_call_counts(app: App) -> None:
    calls: list[int] = []

    @app.middleware
    async def again(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(3):
            try:
                await call_next()
            except ValueError:
                continue

    def third_time(number: int) -> int:
        calls.append(number)
        if len(calls) < 3:
            raise ValueError
        return len(calls)

    task(app, "async", third_time)
    assert await attempt(app) == Done("3")


async def test_a_stop_iteration_of_a_handler_passes_through(app: App) -> None:
    surround(app, "def", "generator")
    task(app, "def", lambda _: next(iter(())))
    outcome = await attempt(app)
    assert isinstance(outcome, Raised)
    assert type(outcome.error) is StopIteration


async def test_a_handler_that_is_cancelled_cleans_up_through_it(app: App) -> None:
    said: list[str] = []
    began = asyncio.Event()

    @app.middleware
    def cleaned(ctx: Context) -> Steps:
        try:
            yield
        finally:
            said.append("cleaned")

    @app.task(type="t")
    async def wait(number: int) -> None:
        began.set()
        await asyncio.Event().wait()

    work = one_work(app, claimed(type="t", payload='{"number":1}'))
    running = asyncio.create_task(run_async(work))
    await began.wait()
    work.halt(Halt.DRAIN)
    running.cancel()
    assert await running == Requeued()
    assert said == ["cleaned"]


async def test_handler_and_middleware_have_the_same_context(app: App) -> None:
    seen: list[Context] = []

    @app.middleware
    def note(ctx: Context) -> Steps:
        seen.append(ctx)
        yield

    @app.task(type="t")
    async def handle(ctx: Context, number: int) -> None:
        seen.append(ctx)

    assert await attempt(app) == Done("null")
    assert seen[0] is seen[1]


@pytest.mark.parametrize("first", ["task", "middleware"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_cannot_go_round_a_task_is_refused_and_both_are_named(app: App, kind: str, first: str) -> None:
    other = "def" if kind == "async" else "async"
    steps: list[Callable[[], None]] = [
        lambda: task(app, other, lambda number: number),
        lambda: surround(app, kind, "call_next"),
    ]
    earlier, later = steps if first == "task" else reversed(steps)
    earlier()
    with pytest.raises(ConfigError, match="skip_others=True") as caught:
        later()
    assert str(caught.value).count("test_middleware.py:") == 2


async def test_middleware_that_was_set_to_skips_the_tasks_of_the_other_kind(app: App) -> None:
    seen: list[str] = []

    @app.middleware(skip_others=True)
    async def around(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        seen.append(ctx.job.type)
        return await call_next()

    task(app, "async", lambda number: number)
    task(app, "def", lambda number: number, "plain")
    assert await attempt(app) == Done("1")
    assert run_sync(one_work(app, claimed(type="plain", payload='{"number":2}'))) == Done("2")
    assert seen == ["t"]


async def async_generator(ctx: Context) -> Any:
    yield


WRONG: list[Any] = [lambda: None, lambda ctx: None, async_generator, 7, Context]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: str(each).partition(" at ")[0])
def test_what_has_none_of_the_forms_is_refused(app: App, wrong: Any) -> None:
    with pytest.raises(ConfigError, match="middleware"):
        app.middleware(wrong)


def test_without_middleware_the_worker_calls_the_function_itself(app: App) -> None:
    @app.task
    def handle() -> None: ...

    assert app.registry.get("handle").handler is handle.definition.function
    surround(app, "def", "generator")
    assert app.registry.get("handle").handler is not handle.definition.function
