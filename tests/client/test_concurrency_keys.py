"""Concurrency keys: on a task a template over its arguments, on a job a value; checked when they are said."""

from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from windlass import App, Context, InvalidInput, InvalidName, InvalidOption, NewJob, Task
from windlass.core.flow.rate import Rate


class Size(Enum):
    SMALL = "s"


@pytest.fixture
def app() -> App:
    """Nothing here is stored."""
    return App("sqlite:///never-opened.db")


def task_with(app: App, **options: Any) -> Task[..., Any, Any]:
    @app.task(type="t", **options)
    def task(ctx: Context, album: int, name: str = "x", thing: Any = None, size: Size = Size.SMALL) -> None: ...

    made: Task[..., Any, Any] = task
    return made


@pytest.mark.parametrize(
    ("template", "arguments", "key"),
    [
        ("album:{album}", {"album": 7}, "album:7"),
        ("{album}:{name}", {"album": 7}, "7:x"),
        ("{name}{name}", {"album": 7, "name": "{album}"}, "{album}{album}"),
        ("{{{album}}}", {"album": 7}, "{7}"),
        ("one for all", {"album": 7}, "one for all"),
        ("{thing}", {"album": 7, "thing": True}, "true"),
        ("{thing}", {"album": 7, "thing": 1.5}, "1.5"),
        ("{size}", {"album": 7}, "s"),
        ("{size}", {"album": 7, "size": Size.SMALL}, "s"),
        ("größe:{name}", {"album": 7, "name": "🧵"}, "größe:🧵"),
    ],
)
def test_the_key_is_made_of_the_arguments_as_json_has_them(
    app: App, template: str, arguments: dict[str, Any], key: str
) -> None:
    assert task_with(app, concurrency_key=template).job(**arguments).concurrency_key == key


def test_a_value_that_is_text_in_json_makes_the_key_that_another_producers_text_makes(app: App) -> None:
    @app.task(concurrency_key="{at}/{who}")
    def meet(at: datetime, who: UUID) -> None: ...

    at, who = datetime(2026, 1, 31, 9, tzinfo=UTC), UUID(int=7)
    assert meet.job(at, who).concurrency_key == "2026-01-31T09:00:00Z/00000000-0000-0000-0000-000000000007"


def test_a_job_has_its_own_key_and_limits_over_those_of_its_task(app: App) -> None:
    task = task_with(app, concurrency_key="{album}", key_limit=2, key_order="strict", key_rate="10/s", rate_cost=3)
    job = task.job(1)
    assert terms(job) == ("1", 2, True, Rate(10, 1_000_000, 10), 3)
    own = task.using(concurrency_key="{mine}", key_limit=5, key_order="any", key_rate="1/m burst 9", rate_cost=9)
    assert terms(own.job(1)) == ("{mine}", 5, False, Rate(1, 60_000_000, 9), 9)


def terms(job: NewJob) -> tuple[Any, ...]:
    return job.concurrency_key, job.key_limit, job.key_strict, job.key_rate, job.rate_cost


def test_a_cost_needs_no_key_since_the_queue_may_have_a_rate(app: App) -> None:
    assert task_with(app, rate_cost=5).job(1).rate_cost == 5
    assert task_with(App("sqlite:///x.db")).using(rate_cost=6).job(1).rate_cost == 6


BAD_TEMPLATES: dict[str, tuple[Any, str]] = {
    "attribute": ("{album.real}", r"\{album.real\} in .* is not the name of an argument"),
    "index": ("{thing[0]}", "is not the name of an argument: nothing else may stand in braces"),
    "dunder": ("{album.__class__}", "is not the name of an argument"),
    "conversion": ("{name!r}", "is not the name of an argument"),
    "format": ("{album:05}", "is not the name of an argument"),
    "nested": ("{album:{name}}", "is not the name of an argument"),
    "position": ("{0}", "is not the name of an argument"),
    "nothing": ("{}", "is not the name of an argument"),
    "blanks": ("{ album }", "is not the name of an argument"),
    "unknown": ("x{nmae}", "'nmae', which is not an argument of t; there are album, name, thing, size"),
    "context": ("{ctx}", "'ctx', which is not an argument of t"),
    "open": ("{album", "is no template: expected '}' before end of string; write {{ and }} for braces"),
    "closed": ("album}", "is no template: single '}' encountered"),
    "empty": ("", "must be 1 to 512 bytes without NUL, not 0 bytes"),
    "long": ("x" * 513, "must be 1 to 512 bytes without NUL, not 513 bytes"),
    "NUL": ("a\x00{album}", "must be 1 to 512 bytes without NUL"),
    "number": (7, "must be a string, not int"),
    "None": (None, "must be a string, not NoneType"),
}


@pytest.mark.parametrize("row", BAD_TEMPLATES)
def test_a_template_that_cannot_work_is_refused_where_the_task_is_written(app: App, row: str) -> None:
    template, problem = BAD_TEMPLATES[row]
    with pytest.raises(InvalidInput, match=f"^concurrency_key: .*{problem}") as caught:
        task_with(app, concurrency_key=template)
    assert len(str(caught.value)) < 500
    assert app.registry.types == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"key_limit": 2}, "^key_limit: has no effect without a concurrency_key"),
        ({"key_order": "strict"}, "^key_order: has no effect without a concurrency_key"),
        ({"key_rate": "1/s"}, "^key_rate: has no effect without a concurrency_key"),
        ({"concurrency_key": "k", "key_limit": 0}, "^key_limit: must be a whole number from 1 to 10000, not 0"),
        ({"concurrency_key": "k", "key_order": "fifo"}, "^key_order: 'fifo' is not one of strict, any"),
        (
            {"concurrency_key": "k", "key_rate": "often"},
            "^key_rate: 'often' is not a rate .*; a whole number, and a period in s, m, h or d",
        ),
        ({"concurrency_key": "k", "key_rate": "2/s", "rate_cost": 3}, "^rate_cost: is 3, more than the 2 "),
        ({"rate_cost": 0}, "^rate_cost: must be a whole number from 1 to 1000000, not 0"),
    ],
)
def test_limits_that_cannot_be_are_refused_where_the_task_is_written(
    app: App, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidOption, match=problem):
        task_with(app, **options)


@pytest.mark.parametrize(
    ("value", "error", "problem"),
    [
        (None, InvalidOption, "argument 'thing' is null; 'k:{thing}' needs text, a number or a boolean there"),
        ({"a": 1}, InvalidOption, "argument 'thing' is an object"),
        ([1], InvalidOption, "argument 'thing' is a list"),
        ("x" * 511, InvalidName, "must be 1 to 512 bytes without NUL, not 513 bytes, as made from 'k:{thing}'"),
        ("a\x00", InvalidName, "must be 1 to 512 bytes without NUL"),
    ],
)
def test_arguments_that_make_no_key_are_refused_at_the_producer(
    app: App, value: Any, error: type[InvalidInput], problem: str
) -> None:
    task = task_with(app, concurrency_key="k:{thing}")
    with pytest.raises(error, match=f"^concurrency_key: {problem}"):
        task.job(1, thing=value)


def test_a_template_on_a_job_is_refused_since_it_would_put_all_jobs_under_one_key(app: App) -> None:
    with pytest.raises(
        InvalidOption, match=r"^concurrency_key: 'a:\{album\}' is taken as it is, .* give the task the template"
    ):
        task_with(app).using(concurrency_key="a:{album}")


@pytest.mark.parametrize(
    ("option", "where"),
    [
        ({"rate_limit": "10/m"}, r"on a queue: app\.queue\(name, rate_limit=.* concurrency_key and key_rate"),
        ({"max_concurrency": 4}, r"on a queue: app\.queue\(name, max_concurrency=4\).* and key_limit"),
        ({"tenant": "acme"}, r"on a job: task\.using\(tenant="),
    ],
)
def test_an_option_that_no_task_has_is_refused_with_where_to_set_it(
    app: App, option: dict[str, Any], where: str
) -> None:
    with pytest.raises(InvalidOption, match=f"is not a task option; it is set {where}"):
        task_with(app, **option)


def test_what_the_job_says_is_checked_together_with_what_its_task_says(app: App) -> None:
    task = task_with(app, concurrency_key="{album}", key_rate="5/s")
    assert task.using(key_limit=3).job(1).key_limit == 3
    with pytest.raises(InvalidOption, match=r"^rate_cost: is 6, more than the 5 that a key_rate of 5/s can save up"):
        task.using(rate_cost=6).job(1)
    assert task.using(rate_cost=6, key_rate="5/s burst 6").job(1).rate_cost == 6


def test_an_argument_of_any_name_may_be_in_the_payload_but_not_in_the_key(app: App) -> None:
    def task(**rest: Any) -> None: ...

    with pytest.raises(InvalidOption, match="'album', which is not an argument of task; it has none"):
        app.task(concurrency_key="{album}")(task)
