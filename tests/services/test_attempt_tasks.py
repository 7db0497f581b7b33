"""One asyncio task for each `async def` job: what a handler leaves on its task or in its context ends with it."""

import asyncio
import contextvars
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.services.parts import Listener, Outcomes, table_of, work_of
from windlass import App, current_job
from windlass.client.runtime.loops import loop_factory
from windlass.core.events import InternalError
from windlass.core.jobs.outcome import Done, Raised
from windlass.core.jobs.retry import Exponential
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.handlers.work import Halt, Work
from windlass.worker.runner.slots import Slots
from windlass.worker.shared_table import SharedTable

JOBS = 20
Handler = Callable[[int], Awaitable[Any]]


class Bench:
    """Slots for the jobs of one handler."""

    def __init__(self, table: SharedTable, concurrency: int) -> None:
        self.app = App("sqlite:///never-opened.db")
        self.table = table
        self.outcomes = Outcomes()
        self.listener = Listener()
        cells = HandlerProcessPool(WorkerConfig(app="nowhere:app"))
        self.slots = Slots(
            concurrency, table, cells, retry=lambda _: Exponential(), ended=self.outcomes, emit=self.listener
        )

    def works(self, handler: Handler, jobs: int = JOBS) -> list[Work]:
        async def job(number: int) -> Any:
            return await handler(number)

        task = self.app.task(type=handler.__name__)(job)
        return [work_of(self.app, self.table, task.job(number)) for number in range(jobs)]

    async def run(self, handler: Handler, jobs: int = JOBS) -> list[Any]:
        """Its outcomes, in the order of the jobs; within a time that only a lost slot needs."""
        works = self.works(handler, jobs)
        self.slots.add(works)
        async with asyncio.timeout(20):
            await self.slots.idle()
        assert (self.slots.running, self.slots.buffered) == (0, 0)
        found = dict(self.outcomes.all)
        return [found[work] for work in works]


@asynccontextmanager
async def bench_of(concurrency: int) -> AsyncIterator[Bench]:
    with table_of() as table:
        yield Bench(table, concurrency)


def results(outcomes: list[Any]) -> list[str | None]:
    assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
    return [outcome.result for outcome in outcomes]


@pytest.mark.parametrize("concurrency", [1, 7])
@pytest.mark.parametrize("waits", [True, False])
async def test_each_job_has_a_task_of_its_own_with_a_name_that_tells_it(concurrency: int, waits: bool) -> None:
    seen: list[asyncio.Task[Any]] = []
    names: dict[str, str] = {}

    async def look(number: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        seen.append(task)
        names[current_job().id] = task.get_name()
        if waits:
            await asyncio.sleep(0)
        assert asyncio.current_task() is task
        assert task in asyncio.all_tasks()

    before = asyncio.current_task()
    async with bench_of(concurrency) as bench:
        results(await bench.run(look))
        assert asyncio.current_task() is before
    assert len(set(seen)) == JOBS
    assert all(task.done() for task in seen)
    assert names == {id_: f"look {id_}" for id_ in names}
    assert len(names) == JOBS


class Base(DeclarativeBase): ...


class Row(Base):
    __tablename__ = "rows"
    number: Mapped[int] = mapped_column(primary_key=True)


@pytest.mark.parametrize("waits", [True, False])
async def test_rows_of_failed_jobs_are_not_committed_by_others(tmp_path: Path, waits: bool) -> None:
    """A session for each task, as SQLAlchemy documents it: a job that fails leaves its own behind."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/theirs.db")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    maker = async_sessionmaker(engine)
    session: async_scoped_session[AsyncSession] = async_scoped_session(maker, scopefunc=asyncio.current_task)

    async def write(number: int) -> None:
        if waits:
            await asyncio.sleep(0)
        session.add(Row(number=number))
        if number % 2:
            raise ValueError("not this one")
        await session.commit()
        await session.remove()

    async with bench_of(3) as bench:
        outcomes = await bench.run(write)
    async with maker() as reader:
        rows = await reader.scalars(select(Row.number).order_by(Row.number))
        assert list(rows) == list(range(0, JOBS, 2))
    await engine.dispose()
    assert [type(outcome) for outcome in outcomes] == [Done, Raised] * (JOBS // 2)


@pytest.mark.parametrize("concurrency", [1, 7])
async def test_a_cancel_that_a_job_leaves_behind_hurts_no_other(concurrency: int) -> None:
    async def leave(number: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(0)
        if number % 2 == 0:
            asyncio.get_running_loop().call_soon(task.cancel)
            task.cancel()
        else:
            await asyncio.sleep(0.001)
        return number

    async with bench_of(concurrency) as bench:
        assert results(await bench.run(leave)) == [str(number) for number in range(JOBS)]


async def test_a_timeout_that_is_left_open_hurts_no_other() -> None:
    async def leave(number: int) -> int:
        if number == 0:
            await asyncio.timeout(0.01).__aenter__()
        else:
            await asyncio.sleep(0.005)
        return number

    async with bench_of(1) as bench:
        assert results(await bench.run(leave)) == [str(number) for number in range(JOBS)]


async def test_a_handler_that_cancels_itself_has_failed() -> None:
    async def cancel(number: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async with bench_of(1) as bench:
        outcomes = await bench.run(cancel)
    assert [type(outcome.error) for outcome in outcomes] == [asyncio.CancelledError] * JOBS


class Awkward:
    """As an array: comparing two of them gives no truth."""

    def __eq__(self, other: object) -> Any:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("waits", [True, False])
async def test_context_variables_end_with_their_job(waits: bool) -> None:
    var: contextvars.ContextVar[Any] = contextvars.ContextVar("var")
    first = Awkward()
    var.set(first)

    async def put(number: int) -> bool:
        found = var.get() is first
        var.set(Awkward())
        if waits:
            await asyncio.sleep(0)
        return found

    async with bench_of(1) as bench:
        assert set(results(await bench.run(put))) == {"true"}
    assert var.get() is first


async def test_done_callbacks_and_weak_references_see_the_end_of_each_job() -> None:
    ended: list[str] = []
    by_task: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()

    async def watch(number: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        assert task not in by_task
        by_task[task] = number
        id_ = current_job().id
        task.add_done_callback(lambda _: ended.append(id_))
        if number % 2:
            await asyncio.sleep(0)
        return number

    async with bench_of(3) as bench:
        results(await bench.run(watch))
        await asyncio.sleep(0)
        assert sorted(ended) == sorted(work.claimed.id for work, _ in bench.outcomes.all)
    assert len(by_task) <= 1, "tasks of jobs that have ended are kept"


async def test_anyio_scopes_and_groups_work_and_end_with_their_job() -> None:
    async def scoped(number: int) -> list[int]:
        found: list[int] = []

        async def add(each: int) -> None:
            await anyio.lowlevel.checkpoint()
            found.append(each)

        async with anyio.create_task_group() as group:
            for each in range(3):
                group.start_soon(add, each)
        with anyio.move_on_after(0.001) as scope:
            await anyio.sleep(60)
        assert scope.cancelled_caught
        if number % 2:
            anyio.CancelScope().__enter__().cancel()  # left open, and cancelled
        return sorted(found)

    async with bench_of(2) as bench:
        assert set(results(await bench.run(scoped))) == {"[0,1,2]"}


async def test_httpx_clients_time_out_and_go_on() -> None:
    async def hang(request: httpx.Request) -> httpx.Response:
        await anyio.sleep(60)
        raise AssertionError

    async def fetch(number: int) -> int:
        answer = httpx.MockTransport(lambda request: httpx.Response(204))
        async with httpx.AsyncClient(transport=httpx.MockTransport(hang)) as slow:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await slow.get("http://example.invalid/")
        async with httpx.AsyncClient(transport=answer) as quick:
            return (await quick.get("http://example.invalid/")).status_code

    async with bench_of(5) as bench:
        assert results(await bench.run(fetch)) == ["204"] * JOBS


async def test_a_job_is_cancelled_in_its_own_task_only() -> None:
    entered = asyncio.Event()

    async def wait(number: int) -> None:
        entered.set()
        await asyncio.sleep(3600 if number == 0 else 0)

    async with bench_of(1) as bench:
        works = bench.works(wait, 5)
        bench.slots.add(works)
        await entered.wait()
        bench.slots.halt(works[0], Halt.TIMEOUT)
        async with asyncio.timeout(20):
            await bench.slots.idle()
        assert bench.outcomes.kinds == ["Raised", "Done", "Done", "Done", "Done"]


async def test_a_job_that_is_cancelled_before_its_first_step_ends() -> None:
    async def wait(number: int) -> None:
        await asyncio.sleep(3600)

    async with bench_of(2) as bench:
        works = bench.works(wait, 2)
        bench.slots.add(works)
        # Nothing has run since: on older versions of Python neither task has begun.
        bench.slots.halt(works[0], Halt.TIMEOUT)
        bench.slots.halt(works[1], Halt.DRAIN)
        async with asyncio.timeout(20):
            await bench.slots.idle()
        assert sorted(bench.outcomes.kinds) == ["Raised", "Requeued"]


async def test_a_failure_of_ours_is_reported_and_costs_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    async def quick(number: int) -> int:
        await asyncio.sleep(0)
        return number

    def fail(work: Work, outcome: object) -> None:
        raise RuntimeError("ours")

    async with bench_of(2) as bench:
        monkeypatch.setattr(bench.slots, "_report", fail)
        bench.slots.add(bench.works(quick))
        async with asyncio.timeout(20):
            await bench.slots.idle()
        reported = [event for event in bench.listener.heard if isinstance(event, InternalError)]
        assert len(reported) == JOBS
        assert "RuntimeError: ours" in reported[0].problem
        assert {event.job for event in reported} == {entry.id for entry in bench.table.held()}


async def test_jobs_that_never_wait_let_the_loop_turn() -> None:
    async def quick(number: int) -> None: ...

    async with bench_of(1) as bench:
        bench.slots.add(bench.works(quick, 90))
        turns = 0
        while bench.slots.running or bench.slots.buffered:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 1
        assert bench.slots.ended == 90


async def test_a_task_factory_of_the_app_is_used() -> None:
    made: list[asyncio.Task[Any]] = []

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        made.append(task)
        return task

    async def quick(number: int) -> int:
        return number

    loop = asyncio.get_running_loop()
    async with bench_of(2) as bench:
        loop.set_task_factory(factory)
        try:
            results(await bench.run(quick))
        finally:
            loop.set_task_factory(None)
        assert sorted(task.get_name() for task in made) == sorted(
            f"quick {work.claimed.id}" for work, _ in bench.outcomes.all
        )


@pytest.mark.parametrize(
    "law",
    [
        test_a_timeout_that_is_left_open_hurts_no_other,
        test_a_handler_that_cancels_itself_has_failed,
        test_done_callbacks_and_weak_references_see_the_end_of_each_job,
        test_anyio_scopes_and_groups_work_and_end_with_their_job,
        test_httpx_clients_time_out_and_go_on,
        test_a_job_is_cancelled_in_its_own_task_only,
        test_a_job_that_is_cancelled_before_its_first_step_ends,
        test_jobs_that_never_wait_let_the_loop_turn,
        test_a_task_factory_of_the_app_is_used,
    ],
)
def test_it_holds_on_the_loop_of_runners_too(law: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(law())
