"""A job with a retry policy of its own, and policies that programs write themselves."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.client.labour import Labour
from windlass import (
    App,
    Backoff,
    ByError,
    ConfigError,
    Exponential,
    Fixed,
    InvalidOption,
    Job,
    Retry,
    Status,
    Steps,
    Task,
)
from windlass.testing import run_all


@pytest.fixture
def task(app: App) -> Task[[], None, None]:
    """A task with a policy of its own."""

    @app.task(type="t", retry=Fixed(attempts=9, base=7, jitter=0))
    def task() -> None: ...

    return task


def nothing() -> None: ...


def wait_of(job: Job) -> int:
    """Seconds from its last failure to its next attempt."""
    ended = job.attempts[-1].ended_at
    assert ended is not None
    return round((job.run_at - ended).total_seconds())


def test_the_policy_of_a_job_is_stored_with_it(app: App, task: Task[[], None, None], labour: Labour) -> None:
    handle = task.using(retry=Steps("10s", "2m", jitter=0), meta={"by": "me"}).enqueue()
    assert handle.job().max_attempts == 3
    assert handle.job().meta["by"] == "me"
    labour.fail(OSError("once"))
    assert wait_of(handle.job()) == 10
    app.jobs.run_now(handle)
    labour.fail(OSError("twice"))
    assert wait_of(handle.job()) == 120
    app.jobs.run_now(handle)
    labour.fail(OSError("thrice"))
    assert (handle.status, handle.job().reason) == (Status.DEAD, "failed 3 of 3 attempts")


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        ([{"retry": Exponential(attempts=4)}], 4),
        ([{"retry": Exponential(attempts=4), "max_attempts": 6}], 6),
        ([{"max_attempts": 6}, {"retry": Exponential(attempts=4)}], 4),
        ([{"retry": Exponential(attempts=4)}, {"max_attempts": 6}], 6),
        ([{"priority": 1}], 9),
    ],
)
def test_the_budget_is_the_last_one_said(
    task: Task[[], None, None], options: list[dict[str, Any]], attempts: int
) -> None:
    for each in options:
        task = task.using(**each)
    assert task.job().max_attempts == attempts


@pytest.mark.parametrize("policy", [ByError({}), 5, Exponential, None], ids=repr)
def test_only_a_policy_that_can_be_stored_is_taken(app: App, task: Task[[], None, None], policy: Any) -> None:
    with pytest.raises(InvalidOption, match="retry: must be Exponential, Linear, Fixed or Steps, not"):
        task.using(retry=policy)
    with pytest.raises(InvalidOption, match=r"meta: has 'windlass.retry'"):
        task.using(meta={"windlass.retry": 5})


class Fibonacci:
    """A policy of the program."""

    attempts = 5

    def seconds(self, failures: int, random: Random) -> float:
        return (1, 1, 2, 3, 5)[failures - 1]


def test_a_task_may_have_a_policy_of_the_program() -> None:
    app = App.testing()

    @app.task(type="t", retry=Fibonacci())
    def fail() -> None:
        raise OSError

    @app.task(type="own")
    def own() -> None:
        raise OSError

    assert isinstance(Fibonacci(), Backoff)
    fail.enqueue()
    own.using(retry=Steps(1, 5, jitter=0)).enqueue()
    report = run_all(app, advance=True)
    waits = {
        job.type: [
            round((later.started_at - one.started_at).total_seconds())
            for one, later in zip(job.attempts, job.attempts[1:], strict=False)
            if one.started_at and later.started_at
        ]
        for job in report.dead
    }
    assert waits == {"t": [1, 1, 2, 3], "own": [1, 5]}


@pytest.mark.parametrize("policy", [5, "often", Exponential, object()])
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with pytest.raises(InvalidOption, match="retry: must be Exponential, Linear, Fixed, Steps, ByError or another"):
        App.testing().task(retry=policy)(nothing)


def test_the_budget_of_a_policy_is_checked() -> None:
    endless = type("Endless", (Fibonacci,), {"attempts": 0})
    with pytest.raises((InvalidOption, ConfigError), match=r"retry.attempts: must be a whole number from 1"):
        App.testing().task(retry=endless())(nothing)


def test_durations_may_be_text_everywhere(app: App, task: Task[[], None, None], labour: Labour) -> None:
    app.queue("slow", timeout="2m", retention={"completed": "3d"}, retry=Steps("1s", "5s"), ageing="10m")
    app.schedule("often", task.job(), every="5m", jitter="30s")
    job = (
        task.using(delay="1h", timeout="2m", expires="2h", idempotency_key="k", idempotency_window="1d")
        .enqueue()
        .job()
    )
    assert job.run_at - job.created_at == timedelta(hours=1)
    assert job.expires_at is not None
    assert job.expires_at - job.created_at == timedelta(hours=2)
    assert (job.timeout, job.idempotency_window) == (120, 86_400)
    app.jobs.change(job, delay="0s")
    labour.fail(Retry(after="10m"))
    assert wait_of(app.jobs.get(job)) == 600
    assert app.queues.get("slow").rules.retry == Steps(1, 5)
    assert app.stats.recent("5m").meters == ()
    with pytest.raises(TimeoutError, match=r"is still failed after 0\.001 s"):
        task.using(id=job).enqueue().result(timeout="1ms")
