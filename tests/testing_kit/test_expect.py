"""What waits, and what a test is told when it is something else."""

import contextlib
import sqlite3
from datetime import timedelta
from typing import Any

import pytest

from windlass import App, ConfigError, InvalidPayload, UnknownTask
from windlass.client.tasks.task import Task
from windlass.testing import assert_enqueued, assert_not_enqueued, enqueued, run_all

Welcome = Task[..., None, None]


@pytest.fixture
def welcome(app: App) -> Welcome:
    """A task, of which one job waits."""

    @app.task
    def welcome(user: int, lang: str = "en") -> None: ...

    welcome.using(queue="mail", delay=60).enqueue(42, lang="de")
    return welcome


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((42,), {}),
        ((42, "de"), {}),
        ((), {"lang": "de"}),
        ((42,), {"count": 1, "queue": "mail", "delay": 60}),
        ((), {"delay": timedelta(minutes=1)}),
    ],
)
def test_a_job_that_waits_is_found_by_what_is_said_of_it(
    app: App, welcome: Welcome, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    (job,) = assert_enqueued(app, welcome, *args, **kwargs)
    assert job.payload == {"user": 42, "lang": "de"}
    assert assert_enqueued(app, "welcome", *args, **kwargs) == [job]
    if "count" not in kwargs:
        with pytest.raises(AssertionError, match="is enqueued, and should not be"):
            assert_not_enqueued(app, welcome, *args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((41,), {}),
        ((42, "en"), {}),
        ((42,), {"queue": "default"}),
        ((42,), {"delay": 61}),
        ((42,), {"delay": 0}),
    ],
)
def test_another_job_is_not_taken_for_it(
    app: App, welcome: Welcome, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(AssertionError, match="is not enqueued"):
        assert_enqueued(app, welcome, *args, **kwargs)
    assert_not_enqueued(app, welcome, *args, **kwargs)


def test_the_number_must_be_right_if_it_is_said(app: App, welcome: Welcome) -> None:
    with pytest.raises(AssertionError, match=r"^welcome\(…\) is enqueued 1 time, not 2 times\n"):
        assert_enqueued(app, welcome, count=2)
    assert assert_enqueued(app, welcome, 7, count=0) == []


def test_a_job_in_place_of_a_task_means_exactly_these_arguments(app: App, welcome: Welcome) -> None:
    assert_enqueued(app, welcome.job(42, "de"))
    assert_not_enqueued(app, welcome.job(42))
    with pytest.raises(TypeError, match="in the job already"):
        assert_enqueued(app, welcome.job(42), 42)


def test_arguments_are_compared_as_a_payload_holds_them(app: App) -> None:
    @app.task
    def draw(points: list[tuple[int, int]], queue: str) -> None: ...

    draw.enqueue([(1, 2)], "red")
    assert_enqueued(app, draw, [(1, 2)])
    assert_enqueued(app, draw.job([(1, 2)], queue="red"))


def test_the_message_says_what_waits_and_what_has_run(app: App, welcome: Welcome) -> None:
    @app.task
    def clean() -> None: ...

    clean.enqueue()
    run_all(app)
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(app, clean)
    assert str(caught.value).splitlines() == [
        "clean(…) is not enqueued",
        "Enqueued:",
        "  welcome(user=42, lang='de') in queue mail, scheduled, due after 1m",
        "Ran already:",
        "  clean() in queue default, completed",
    ]


def test_the_message_says_that_nothing_waits(app: App) -> None:
    @app.task
    def clean() -> None: ...

    with pytest.raises(AssertionError, match=r"^clean\(…\) is not enqueued\nNothing is enqueued\.$"):
        assert_enqueued(app, clean)


def test_a_long_list_is_cut_short(app: App) -> None:
    @app.task
    def work(n: int) -> None: ...

    app.enqueue_many([work.job(n) for n in range(600)])
    with pytest.raises(AssertionError, match="… and 580 more"):
        assert_enqueued(app, work, 1000)
    assert_enqueued(app, work, count=600)


def test_a_misspelt_task_or_argument_is_an_error_and_not_an_absence(app: App, welcome: Welcome) -> None:
    with pytest.raises(UnknownTask, match="welcom"):
        assert_not_enqueued(app, "welcom")
    with pytest.raises(InvalidPayload, match="usr"):
        assert_not_enqueued(app, welcome, usr=42)


def test_what_waits_is_listed_in_the_order_of_enqueue(app: App, welcome: Welcome) -> None:
    @app.task
    def work(n: int) -> None: ...

    for n in (1, 2):
        work.enqueue(n)
    assert [job.type for job in enqueued(app)] == ["welcome", "work", "work"]
    assert [job.payload["n"] for job in enqueued(app, work)] == [1, 2]
    assert [job.type for job in enqueued(app, queue="mail")] == ["welcome"]
    assert [job.type for job in enqueued(app, "welcome", queue="default")] == []


def test_the_message_says_what_is_different_about_a_job_of_the_task(app: App, welcome: Welcome) -> None:
    @app.task
    def clean() -> None: ...

    clean.enqueue()
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(app, welcome, 41, queue="default", delay=90)
    assert str(caught.value).splitlines()[1:] == [
        "Enqueued:",
        "  welcome(user=42, lang='de') in queue mail, scheduled, due after 1m: "
        "user is 42, not 41; the queue is mail, not default; due after 1m, not 1m 30s",
        "  clean() in queue default, pending",
    ]
    with pytest.raises(AssertionError, match="lang is 'de', not 'en'"):
        assert_enqueued(app, welcome.job(42, "en"))


def test_the_message_says_that_a_commit_is_missing(app: App, welcome: Welcome) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        welcome.using(connection=db).enqueue(7)
        with pytest.raises(AssertionError, match=r"\nIn transactions that have not committed: 1 enqueue$"):
            assert_enqueued(app, welcome, 7)
        db.commit()
        assert_enqueued(app, welcome, 7)


def test_what_is_no_app_or_no_task_of_it_is_an_error(app: App, welcome: Welcome) -> None:
    def plain() -> None: ...

    other = App.testing()

    @other.task(type="welcome")
    def stranger() -> None: ...

    for look in (enqueued, assert_enqueued, assert_not_enqueued):
        with pytest.raises(TypeError, match=r"the first argument is the app under test, not Task\('welcome'\)"):
            look(welcome, 42)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"give a task.*not <function .*plain.*decorated with @app.task\?"):
            look(app, plain)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"Task\('welcome'\) is no task of App"):
            look(app, stranger)
    other.close()
