"""run_all keeps to the limits of queues and keys, and lets time pass for rates when it may."""

import pytest

from tests.support.seed import nothing
from windlass import App, Status
from windlass.testing import run_all


@pytest.fixture
def app() -> App:
    """An app under test, with a queue that lets one job start each ten seconds."""
    made = App.testing()
    made.queue("slow", rate_limit="1/10s")
    return made


def test_a_rate_is_kept_while_time_is_stopped(app: App) -> None:
    task = app.task(type="t", queue="slow")(nothing)
    app.enqueue_many([task.job() for _ in range(3)])
    assert run_all(app).attempts == 1
    app.clock.advance(seconds=9)
    assert run_all(app).attempts == 0
    app.clock.advance(seconds=1)
    assert run_all(app).attempts == 1


def test_time_passes_until_a_rate_has_let_all_of_them_start(app: App) -> None:
    task = app.task(type="t", queue="slow")(nothing)
    app.enqueue_many([task.job() for _ in range(4)])
    began = app.clock.now
    assert run_all(app, advance=True).attempts == 4
    assert (app.clock.now - began).total_seconds() == pytest.approx(30, abs=0.01)


def test_time_does_not_pass_for_ever_for_jobs_that_cannot_run_here(app: App) -> None:
    task = app.task(type="t", queue="slow")(nothing)
    other = App.testing(app.clock)
    other._store_handle = app._store_handle
    stranger = other.task(type="unknown", queue="slow")(nothing)
    app.enqueue_many([stranger.job(), task.job()])
    assert run_all(app, advance=True).attempts == 1
    assert app.stats.counts().totals[Status.PENDING] == 1


def test_jobs_of_one_key_in_strict_order_wait_for_a_retry_of_the_first(app: App) -> None:
    ran: list[int] = []

    @app.task(concurrency_key="one", key_order="strict", max_attempts=2)
    def step(number: int) -> None:
        ran.append(number)
        if ran == [0]:
            raise ValueError("once")

    app.enqueue_many([step.job(n) for n in range(3)])
    run_all(app)
    assert ran == [0]
    run_all(app, advance=True)
    assert ran == [0, 0, 1, 2]
