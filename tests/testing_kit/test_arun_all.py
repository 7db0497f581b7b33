"""arun_all: the same in asynchronous tests."""

import asyncio
import threading

import pytest

from windlass import App, Fixed
from windlass.testing import arun_all, assert_enqueued, enqueued


async def test_async_handlers_run_on_the_loop_of_the_test(app: App) -> None:
    seen: list[asyncio.AbstractEventLoop] = []

    @app.task
    async def look() -> None:
        seen.append(asyncio.get_running_loop())

    await look.aenqueue()
    report = await arun_all(app)
    assert len(report.completed) == 1
    assert seen == [asyncio.get_running_loop()]


async def test_plain_handlers_run_in_a_thread_where_they_may_block(app: App) -> None:
    @app.task
    def child(thread: str) -> None: ...

    @app.task
    def parent() -> None:
        child.enqueue(threading.current_thread().name)

    await parent.aenqueue()
    first, second = (await arun_all(app)).completed
    assert (first.type, second.type) == ("parent", "child")
    assert second.payload["thread"] != threading.current_thread().name


async def test_time_can_be_let_pass(app: App) -> None:
    @app.task(retry=Fixed(attempts=2, base=60))
    async def fail() -> None:
        raise ValueError("no")

    await fail.aenqueue()
    assert len((await arun_all(app)).failed) == 1
    app.clock.advance(minutes=1)
    assert len((await arun_all(app)).dead) == 1


async def test_errors_can_be_raised_here(app: App) -> None:
    @app.task
    async def fail() -> None:
        raise ValueError("no")

    await fail.aenqueue()
    with pytest.raises(ValueError, match="no"):
        await arun_all(app, raise_errors=True)


async def test_what_waits_can_be_asked_on_a_running_loop(app: App) -> None:
    @app.task
    async def work(n: int) -> None: ...

    await work.aenqueue(1)
    assert len(assert_enqueued(app, work, 1)) == 1


async def test_a_test_that_is_given_up_takes_its_handler_with_it_and_puts_the_job_back(app: App) -> None:
    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    await hang.aenqueue()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await arun_all(app)
    assert [job.status for job in enqueued(app)] == ["pending"]
