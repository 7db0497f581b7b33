"""What a handler can do with its context, and what code without one can find."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.services.parts import Outcomes, claimed, one_work, table_of, work_of
from windlass import (
    App,
    Cancel,
    Context,
    InvalidOption,
    InvalidTime,
    Job,
    NewJob,
    NotInJob,
    UseAsync,
    current_context,
    current_job,
)
from windlass.core.events import silent
from windlass.core.ids import new_id
from windlass.core.jobs.outcome import Done, Outcome, Raised
from windlass.core.jobs.retry import Exponential
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.attempt import run_async, run_sync
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.handlers.work import Work
from windlass.worker.runner.slots import Slots


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(f"sqlite:///{tmp_path}/jobs.db", deadline=30)
    yield app
    await asyncio.to_thread(app.close)


async def attempt(work: Work) -> Outcome:
    """As a slot would: on the loop, or in a thread."""
    return await run_async(work) if work.is_async else await asyncio.to_thread(run_sync, work)


def work_for(app: App, type_: str = "t") -> Work:
    return one_work(app, claimed(type=type_))


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_the_current_job_is_there_in_a_handler_and_nowhere_else(app: App, kind: str) -> None:
    found: list[Job] = []

    def look() -> None:
        found.append(current_job())
        assert current_context().attempt == 1

    @app.task(type="async")
    async def handle_async() -> None:
        look()
        await asyncio.to_thread(look)
        await asyncio.create_task(asyncio.to_thread(look))

    @app.task(type="def")
    def handle_sync() -> None:
        look()

    work = work_for(app, kind)
    assert await attempt(work) == Done("null")
    assert {job.id for job in found} == {work.claimed.id}
    with pytest.raises(NotInJob, match="no current job"):
        current_job()
    with pytest.raises(NotInJob):
        current_context()


async def test_a_bare_thread_of_a_handler_has_no_current_job(app: App) -> None:
    errors: list[Exception] = []

    def look() -> None:
        try:
            current_job()
        except NotInJob as error:
            errors.append(error)

    @app.task(type="t")
    def handle() -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    assert await attempt(work_for(app)) == Done("null")
    assert [error.code for error in errors if isinstance(error, NotInJob)] == ["not_in_job"]


async def test_each_job_has_its_own_current_job_and_its_own_task(app: App) -> None:
    seen: list[tuple[str, asyncio.Task[Any] | None]] = []

    @app.task(type="t")
    async def handle() -> None:
        seen.append((current_job().id, asyncio.current_task()))

    with table_of() as table:
        outcomes = Outcomes()
        slots = Slots(
            1,
            table,
            HandlerProcessPool(WorkerConfig(app="nowhere:app")),
            retry=lambda _: Exponential(),
            ended=outcomes,
            emit=silent,
        )
        works = [work_of(app, table, handle.job()) for _ in range(5)]
        slots.add(works)
        await slots.idle()
    assert outcomes.kinds == ["Done"] * 5
    assert [id_ for id_, _ in seen] == [work.claimed.id for work in works]
    assert len({task for _, task in seen}) == len(seen)


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_child_knows_its_parent(app: App, kind: str) -> None:
    @app.task
    def child(number: int) -> int:
        return number

    @app.task(type="async")
    async def handle_async(ctx: Context) -> list[str]:
        first = await ctx.aenqueue(child.job(1))
        second = await ctx.aenqueue(child, number=2)
        again = await ctx.aenqueue(child.using(idempotency_key="once"), 3)
        existing_job = await ctx.aenqueue(child.using(idempotency_key="once"), 4)
        assert (again.existing, existing_job.existing, existing_job.id) == (False, True, again.id)
        return [first.id, second.id]

    @app.task(type="def")
    def handle_sync(ctx: Context) -> list[str]:
        first = ctx.enqueue(child.job(1))
        second = ctx.enqueue(child, number=2)
        again = ctx.enqueue(child.using(idempotency_key="once"), 3)
        existing_job = ctx.enqueue(child.using(idempotency_key="once"), 4)
        assert (again.existing, existing_job.existing, existing_job.id) == (False, True, again.id)
        return [first.id, second.id]

    work = work_for(app, kind)
    outcome = await attempt(work)
    assert isinstance(outcome, Done), outcome
    children = (await app.jobs.alist(type="child")).items
    assert [job.payload for job in reversed(children)] == [{"number": 1}, {"number": 2}, {"number": 3}]
    assert {job.parent for job in children} == {work.claimed.id}


async def test_a_parent_that_was_chosen_stays(app: App) -> None:
    @app.task
    def child() -> None: ...

    other = (await child.aenqueue()).id

    @app.task(type="t")
    async def handle(ctx: Context) -> str:
        return (await ctx.aenqueue(child.using(parent=other))).id

    assert isinstance(await attempt(work_for(app)), Done)
    assert (await app.jobs.alist(type="child")).items[0].parent == other


async def test_what_is_neither_a_job_nor_a_task_is_not_enqueued(app: App) -> None:
    @app.task
    def child(number: int) -> None: ...

    ctx = Context(work_for(app, "child"))
    wrong: Any = "child"
    with pytest.raises(InvalidOption, match="takes a task or a job"):
        await ctx.aenqueue(wrong)
    job: Any = child.job(1)
    with pytest.raises(InvalidOption, match="without further arguments"):
        await ctx.aenqueue(job, 2)


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_sleep_ends_the_job_when_it_is_cancelled(app: App, kind: str) -> None:
    began = threading.Event()

    @app.task(type="async")
    async def handle_async(ctx: Context) -> None:
        began.set()
        await ctx.sleep(3600)

    @app.task(type="def")
    def handle_sync(ctx: Context) -> None:
        began.set()
        ctx.sleep(3600)

    work = work_for(app, kind)
    running = asyncio.create_task(attempt(work))
    assert await asyncio.to_thread(began.wait, 10)
    work.cancel()
    outcome = await running
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, Cancel)


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_sleep_lasts_as_long_as_it_says(app: App, kind: str) -> None:
    @app.task(type="async")
    async def handle_async(ctx: Context) -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await ctx.sleep(0.3)
        return loop.time() - begun

    @app.task(type="def")
    def handle_sync(ctx: Context) -> float:
        begun = time.monotonic()
        ctx.sleep(0.3)
        return time.monotonic() - begun

    outcome = await attempt(work_for(app, kind))
    assert isinstance(outcome, Done)
    assert outcome.result is not None
    assert float(outcome.result) >= 0.3


async def test_a_sleep_that_is_no_time_is_refused(app: App) -> None:
    @app.task(type="t")
    def handle() -> None: ...

    with pytest.raises(InvalidTime, match="seconds"):
        Context(work_for(app)).sleep(-1)


async def test_the_state_is_the_apps_and_says_what_is_missing(app: App) -> None:
    @app.task(type="t")
    def handle(ctx: Context) -> str:
        return str(ctx.state.pool)

    app.state.pool = "a pool"
    assert await attempt(work_for(app)) == Done('"a pool"')
    with pytest.raises(AttributeError, match=r"set `state.client = …` in an @app.on_start hook"):
        _ = app.state.client
    assert repr(app.state) == "State(pool)"


async def test_the_blocking_enqueue_is_refused_on_the_loop_and_works_in_a_thread_of_the_handler(app: App) -> None:
    @app.task
    def child(number: int) -> None: ...

    @app.task(type="t")
    async def handle(ctx: Context) -> None:
        with pytest.raises(UseAsync, match=r"ctx.enqueue\(\) blocks .* use `await ctx.aenqueue\(…\)`"):
            ctx.enqueue(child, 1)
        await asyncio.to_thread(ctx.enqueue, child, 2)
        await asyncio.to_thread(ctx.progress, 1)

    work = work_for(app)
    assert await attempt(work) == Done("null")
    assert [job.payload for job in (await app.jobs.alist(type="child")).items] == [{"number": 2}]
    assert work.latest_progress is not None


Forgetful = Callable[[Context, App], object]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda ctx, app: ctx.progress(1), "ctx.progress"),
        (lambda ctx, app: ctx.log("x"), "ctx.log"),
        (lambda ctx, app: ctx.sleep(1), "ctx.sleep"),
        (lambda ctx, app: ctx.aenqueue(NewJob(id=new_id(), type="t", payload="{}")), "ctx.aenqueue"),
        (lambda ctx, app: app.aclose(), "App.aclose"),
    ],
)
async def test_a_coroutine_of_ours_that_is_never_awaited_fails_the_attempt(
    app: App, call: Forgetful, name: str
) -> None:
    @app.task(type="t")
    async def handle(ctx: Context) -> None:
        kept = call(ctx, app)
        await asyncio.sleep(0)
        assert kept

    @app.task(type="next")
    async def awaits(ctx: Context) -> None:
        await ctx.progress(1)
        await ctx.log("x")
        await ctx.sleep(0)

    outcome = await attempt(work_for(app))
    assert isinstance(outcome, Raised)
    assert outcome.report.message.startswith(f"{name}(…) was called, and never awaited")
    assert await attempt(work_for(app, "next")) == Done("null")


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_a_plain_handler_that_calls_the_async_form_fails_too(app: App) -> None:
    @app.task
    def child() -> None: ...

    @app.task(type="t")
    def handle(ctx: Context) -> None:
        ctx.progress(1)
        child.aenqueue()  # type: ignore[unused-coroutine]

    outcome = await attempt(work_for(app))
    assert isinstance(outcome, Raised)
    assert "Task.aenqueue(…) was called, and never awaited" in outcome.report.message
    assert "in a `def` handler call the form that blocks" in outcome.report.message


async def test_a_coroutine_that_an_async_handler_returns_is_a_failure(app: App) -> None:
    @app.task
    def child() -> None: ...

    @app.task(type="t")
    async def handle() -> Any:
        return child.aenqueue()

    outcome = await attempt(work_for(app))
    assert isinstance(outcome, Raised)
    assert "returned a coroutine, which is never awaited: write `return await …`" in outcome.report.message


async def test_the_programs_own_coroutines_are_its_own_affair_and_warned_of_as_ever(app: App) -> None:
    async def forgotten() -> None: ...

    @app.task(type="t")
    async def handle() -> None:
        forgotten()  # type: ignore[unused-coroutine]

    with pytest.warns(RuntimeWarning, match="forgotten' was never awaited") as caught:
        assert await attempt(work_for(app)) == Done("null")
    assert caught[0].filename == __file__


async def test_a_generator_round_an_async_handler_need_not_await(app: App) -> None:
    @app.middleware
    def around(ctx: Context) -> Generator[None, Any, None]:
        ctx.log("before")
        yield
        ctx.progress(1)

    @app.task(type="t")
    async def handle() -> None: ...

    work = work_for(app)
    assert await attempt(work) == Done("null")
    assert [line.text for line in work.lines] == ["before"]
