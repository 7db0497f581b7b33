"""An embedded worker: what it does as any other, and where its promises end."""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from tests.support.addresses import on_sqlite
from tests.support.inside import Inside, inside
from windlass import App, ConfigError, Context, Fixed, Job, JobCancelled, JobDead, State, Status

WAIT = 20.0


@pytest.fixture
def tables(address: str, tmp_path: Path) -> Inside:
    return inside(address, tmp_path)


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Look again and again until the answer is true; that answer."""
    async with asyncio.timeout(WAIT):
        while not (answer := await look()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return answer


async def until_running(app: App, id_: str) -> Job:
    async def running() -> Job | None:
        job = await app.jobs.aget(id_)
        return job if job.status is Status.RUNNING else None

    found: Job = await until(running)
    return found


async def test_it_runs_jobs_is_listed_and_leaves_nothing_behind(app: App, tables: Inside) -> None:
    place: list[object] = []

    @app.task
    async def on_loop() -> int:
        place.append(asyncio.get_running_loop())
        return 1

    @app.task
    def in_thread(ctx: Context, number: int) -> int:
        place.append(threading.current_thread())
        ctx.log("here")
        return on_loop.using(delay=0.2).enqueue().result(timeout=WAIT) + number

    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    async with app.worker(concurrency=3):
        assert await (await on_loop.aenqueue()).aresult(timeout=WAIT) == 1
        second = await in_thread.aenqueue(2)
        assert await second.aresult(timeout=WAIT) == 3  # the job in between was admitted when it was due
        (worker,) = await app.workers.alist()
        assert (worker.processes, worker.slots, worker.queues) == (1, 3, ("default",))
        assert worker.types == ("in_thread", "on_loop")  # ours are not shown
        assert [signal.getsignal(number) for number in signal.valid_signals()] == handlers
    assert place[0] is asyncio.get_running_loop()
    assert isinstance(place[1], threading.Thread)
    assert [line.text for line in (await app.jobs.aget(second.id)).logs] == ["here"]
    assert (await app.workers.alist(), tables.leases()) == ([], [])


async def test_hooks_state_middleware_and_logs_are_those_of_a_runner(app: App) -> None:
    reported: list[str] = []

    @app.on_start
    async def start(state: State) -> None:
        state.greeting = "hello"
        reported.append("start")

    @app.on_stop
    def stop(state: State) -> None:
        reported.append("stop")

    @app.middleware
    async def shout(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return (await call_next()).upper()

    seen: ContextVar[str] = ContextVar("seen", default="nothing")
    seen.set("the caller's")

    @app.task
    async def greet(ctx: Context) -> str:
        logging.getLogger("shop").warning("a greeting")
        return f"{ctx.state.greeting} {seen.get()}"

    handlers = list(logging.root.handlers)
    async with app.worker():
        job = await greet.aenqueue()
        assert await job.aresult(timeout=WAIT) == "HELLO NOTHING"
    assert reported == ["start", "stop"]
    assert ["a greeting" in line.text for line in (await app.jobs.aget(job.id)).logs] == [True]
    assert logging.root.handlers == handlers


async def test_failures_are_retried_timeouts_and_cancellations_end_async_handlers(app: App) -> None:
    @app.task(retry=Fixed(base=0.05, attempts=2))
    async def flaky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return ctx.attempt

    @app.task(timeout=0.2, max_attempts=1)
    async def long() -> None:
        await asyncio.sleep(3600)

    @app.task(timeout=None)
    async def endless() -> None:
        await asyncio.sleep(3600)

    async with app.worker():
        retried, late, unwanted = await flaky.aenqueue(), await long.aenqueue(), await endless.aenqueue()
        assert await retried.aresult(timeout=WAIT) == 2
        with pytest.raises(JobDead, match="TimeoutError"):
            await late.aresult(timeout=WAIT)
        await until_running(app, unwanted.id)
        await app.jobs.acancel(unwanted.id)
        with pytest.raises(JobCancelled):
            await unwanted.aresult(timeout=WAIT)


@pytest.mark.parametrize("how", ["left", "cancelled"])
async def test_at_its_end_running_jobs_finish_and_the_rest_is_requeued_uncounted(
    app: App, tables: Inside, how: str
) -> None:
    leaving = asyncio.Event()

    @app.task
    async def short() -> str:
        await leaving.wait()
        await asyncio.sleep(0.1)
        return "finished"

    @app.task
    async def long() -> None:
        await asyncio.sleep(3600)

    entered = asyncio.Event()

    async def live() -> None:
        async with app.worker(concurrency=2, drain=0.5):
            entered.set()
            await leaving.wait()
            if how == "cancelled":
                await asyncio.sleep(3600)

    life = asyncio.create_task(live())
    await entered.wait()
    ids = [(await task.aenqueue()).id for task in (short, long, long)]
    await until_running(app, ids[0])
    await until_running(app, ids[1])
    leaving.set()
    if how == "cancelled":
        await asyncio.sleep(0)
        life.cancel()
        await asyncio.sleep(0.05)
        life.cancel()  # impatience changes nothing
    await asyncio.wait([life])
    assert life.cancelled() is (how == "cancelled")
    jobs = [await app.jobs.aget(id_) for id_ in ids]
    assert [job.status for job in jobs] == [Status.COMPLETED, Status.PENDING, Status.PENDING]
    assert [(job.failures, job.rescues, job.crashes) for job in jobs] == [(0, 0, 0)] * 3
    assert (await app.workers.alist(), tables.leases()) == ([], [])


def test_a_loop_that_is_torn_down_requeues_what_runs(app: App, tables: Inside) -> None:
    ids: list[str] = []

    @app.task
    async def long() -> None:
        await asyncio.sleep(3600)

    async def live() -> None:
        async with app.worker():
            ids.append((await long.aenqueue()).id)
            await until_running(app, ids[0])
            asyncio.get_running_loop().call_soon(_raise)
            await asyncio.sleep(3600)

    def _raise() -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(live())
    job = app.jobs.get(ids[0])
    assert (job.status, job.failures, job.crashes) == (Status.PENDING, 0, 0)
    assert tables.leases() == []


async def test_a_def_handler_past_its_timeout_keeps_its_slot_and_its_job(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()

    @app.task(timeout=0.2)
    def stuck() -> str:
        go_on.wait(WAIT)
        return "ended after all"

    @app.task
    def other() -> None: ...

    async with app.worker(concurrency=2):
        job = await stuck.aenqueue()

        async def overdue() -> bool:
            return "its slot is not free before it ends" in caplog.text

        await until(overdue)
        await (await other.aenqueue()).aresult(timeout=WAIT)  # the worker goes on beside it
        assert (await app.jobs.aget(job.id)).status is Status.RUNNING
        go_on.set()
        assert await job.aresult(timeout=WAIT) == "ended after all"


async def test_a_def_handler_that_outlasts_the_drain_time_goes_on_and_its_job_is_requeued(app: App) -> None:
    go_on, ended = threading.Event(), threading.Event()

    @app.task
    def stuck() -> None:
        go_on.wait(WAIT)
        ended.set()

    async with app.worker(drain=0):
        job = await stuck.aenqueue()
        await until_running(app, job.id)
    try:
        found = await app.jobs.aget(job.id)
        assert (found.status, found.failures, ended.is_set()) == (Status.PENDING, 0, False)
    finally:
        go_on.set()


async def test_a_blocked_loop_loses_its_lease_unless_a_lock_shows_that_it_lives(app: App, address: str) -> None:
    """Another worker rescues what looks dead, and the late outcome is refused."""
    ran: list[int] = []

    @app.task
    async def blocking(ctx: Context) -> None:
        ran.append(ctx.attempt)
        if ctx.attempt == 1:
            time.sleep(1.5)  # noqa: ASYNC251

    other = App(address)

    @other.task(queue="other")
    async def idle() -> None: ...

    with _on_another_loop(other):
        async with app.worker(lease=0.5):
            job = await blocking.aenqueue()
            await job.aresult(timeout=WAIT)
    assert ran == ([1] if address.startswith("sqlite") else [1, 2])


@contextlib.contextmanager
def _on_another_loop(app: App) -> Iterator[None]:
    """An embedded worker in a thread, which the test's own loop cannot block."""
    ready, end = threading.Event(), threading.Event()

    async def live() -> None:
        async with app.worker(lease=0.5):
            ready.set()
            await asyncio.to_thread(end.wait)
        await app.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    assert ready.wait(WAIT)
    try:
        yield
    finally:
        end.set()
        thread.join()


@on_sqlite
async def test_a_start_hook_that_fails_is_raised_at_the_entry(app: App, tables: Inside) -> None:
    @app.on_start
    def start() -> None:
        raise ValueError("no pool")

    with pytest.raises(ConfigError, match="no pool"):
        async with app.worker():
            pass
    assert (await app.workers.alist(), tables.leases()) == ([], [])


@on_sqlite
async def test_an_app_has_one_embedded_worker_at_a_time(app: App) -> None:
    async with app.worker():
        with pytest.raises(ConfigError, match="has an embedded worker in this process already"):
            async with app.worker():
                pass
    async with app.worker():
        pass


@on_sqlite
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"concurrency": 0}, "concurrency must be from 1 to 10000, not 0"),
        ({"lease": 0.1}, "lease must be at least 500ms, not 0.1s"),
        ({"queues": ["a b"]}, "queues"),
        ({"queues": []}, "queues names no queue"),
        ({"queues": ["mail", "mail"]}, "queues names 'mail' twice"),
        ({"queues": ["mail:20"]}, r"queues mail:20 must be from 1 to concurrency \(10\)"),
    ],
)
def test_options_that_cannot_work_are_named(app: App, options: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app.worker(**options)


async def test_an_app_under_test_has_no_worker() -> None:
    with pytest.raises(ConfigError, match="arun_all"):
        async with App.testing().worker():
            pass


@on_sqlite
async def test_a_task_in_a_process_needs_an_app_that_can_be_imported(app: App) -> None:
    @app.task(run_in="process")
    def render() -> None: ...

    with pytest.raises(ConfigError, match="'render' has run_in='process'"):
        async with app.worker():
            pass
