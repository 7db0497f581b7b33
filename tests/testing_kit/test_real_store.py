"""run_all and the assertions on a real store, of which the test is the only worker."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest

from windlass import App, ConfigError, Context, Fixed, InvalidOption, chain
from windlass.store.records import WorkerInfo
from windlass.testing import arun_all, assert_enqueued, run_all


@pytest.fixture
def app(address: str) -> Iterator[App]:
    """An app on an empty store, of each kind."""
    made = App(address)
    yield made
    made.close()


def test_everything_that_is_due_runs_there_and_what_it_enqueues(app: App) -> None:
    app.queue("mail", max_concurrency=2)
    tried: list[int] = []

    @app.task(retry=Fixed(attempts=3, base=0))
    def flaky(ctx: Context) -> str:
        tried.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ConnectionError
        return "sent"

    @app.task(queue="mail")
    async def double(n: int) -> int:
        return 2 * n

    @app.task
    def parent() -> None:
        chain(double.job(4), double).enqueue()

    job = flaky.enqueue()
    parent.enqueue()
    assert_enqueued(app, parent, count=1)
    report = run_all(app)
    assert (len(report.completed), report.attempts, tried) == (4, 6, [1, 2, 3])
    assert job.result(timeout=5) == "sent"
    assert run_all(app).attempts == 0


def test_a_delayed_job_waits_until_it_is_made_due(app: App) -> None:
    @app.task
    def work() -> None: ...

    job = work.using(delay=3600).enqueue()
    assert run_all(app).attempts == 0
    app.jobs.run_now(job.id)
    assert len(run_all(app).completed) == 1


def test_real_time_cannot_be_moved(app: App) -> None:
    with pytest.raises(InvalidOption, match="advance: moves the clock of a test"):
        run_all(app, advance=True)
    with pytest.raises(InvalidOption, match="until: moves the clock of a test"):
        run_all(app, until=timedelta(hours=1))


def test_a_live_worker_is_refused_and_nothing_runs(app: App) -> None:
    @app.task
    def work() -> None: ...

    async def register() -> None:
        store = await app._ready()
        here = WorkerInfo(
            id="w1", host="here", pid=7, version="1", queues=("default",), types=("work",), processes=1, slots=1
        )
        await store.workers.beat(here)

    job = work.enqueue()
    app._portal().run(register())
    with pytest.raises(ConfigError, match="has a live worker, process 7 on here"):
        run_all(app)
    assert app.jobs.get(job.id).status == "pending"


async def test_in_asynchronous_tests_too(app: App) -> None:
    @app.task
    async def work(n: int) -> int:
        return n

    job = await work.aenqueue(7)
    assert len((await arun_all(app)).completed) == 1
    assert await job.aresult(timeout=5) == 7
    await app.aclose()


def test_what_a_killed_test_run_held_runs_again(real: App) -> None:
    @real.task
    def work(ctx: Context) -> int:
        if ctx.attempt == 1:
            os.kill(os.getpid(), 9)
        return ctx.attempt

    job = work.enqueue()
    real.close()
    if (child := os.fork()) == 0:
        run_all(real)
        os._exit(0)
    os.waitpid(child, 0)
    assert len(run_all(real).completed) == 1
    assert job.result(timeout=5) == 2
