"""Registering tasks: mistakes are found when the module is imported, and nothing is read or written."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from windlass import (
    App,
    ByError,
    ConfigError,
    Context,
    Exponential,
    Fixed,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    Task,
    UnknownTask,
)


def test_two_tasks_of_one_type_are_refused_and_both_places_named(app: App) -> None:
    @app.task(type="mail")
    def first() -> None: ...

    with pytest.raises(ConfigError) as caught:

        @app.task(type="mail")
        def second() -> None: ...

    location = first.definition.location
    assert location.startswith(f"{__file__}:")
    assert f"the type 'mail': {location} and {__file__}:" in str(caught.value)


def test_the_type_is_the_qualified_name_without_the_functions_it_was_made_in(app: App) -> None:
    class Mail:
        @staticmethod
        @app.task
        def send() -> None: ...

    assert app.registry.types == ("Mail.send",)


def test_an_unknown_type_is_named_beside_the_known_ones(app: App) -> None:
    app.task(plain)
    with pytest.raises(UnknownTask, match=r"'plian'; did you mean 'plain'\? There are plain"):
        app.registry.get("plian")


def plain(number: int) -> int:
    return number


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def variadic(*numbers: int) -> None: ...


def positional(number: int, /) -> None: ...


def both(number: int, /, *numbers: int) -> None: ...


class Callme:
    def __call__(self) -> None: ...

    def method(self, number: int) -> None: ...

    @classmethod
    def of_class(cls) -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (generator, "generator is a generator"),
        (async_generator, "async_generator is a generator"),
        (variadic, "'numbers' takes any number of positional arguments"),
        (positional, "'number' is positional-only"),
        (functools.partial(plain, 1), "a task is a function, not partial"),
        (Callme(), "a task is a function, not Callme"),
        (Callme, "a task is a function, not type"),
        (42, "a task is a function, not int"),
        (lambda: 1, r"a lambda \(.*test_registration.py:\d+\) cannot be a task: write a `def`"),
        (Callme.method, "Callme.method is a method, and a worker has no object to call it on"),
        (Callme().method, "Callme.method is a method"),
        (Callme.of_class, "Callme.of_class is a method"),
        (vars(Callme)["of_class"], "Callme.of_class is a method"),
    ],
)
def test_what_cannot_be_a_task_is_refused(app: App, function: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app.task(function)
    assert app.registry.types == ()


def test_every_wrong_parameter_is_named_at_once(app: App) -> None:
    with pytest.raises(ConfigError) as caught:
        app.task(both)
    assert len(caught.value.problems) == 2


def annotated(*, result: Any = None, **parameters: Any) -> Callable[..., Any]:
    """A function with these annotations, as a module with `from __future__ import annotations` has them."""

    def send(number: int, order: Any = None, ctx: Any = None) -> Any:
        return number

    send.__annotations__ = {"number": "int", **parameters, "return": result}
    return send


def test_an_annotation_that_cannot_be_resolved_is_named(app: App) -> None:
    with pytest.raises(ConfigError) as caught:
        app.task(type="mail")(annotated(order="list[Order]", result="Receipt"))
    assert [problem.partition(":")[2].partition(";")[0].strip() for problem in caught.value.problems] == [
        "parameter 'order' is annotated 'list[Order]', which cannot be resolved: name 'Order' is not defined",
        "its result is annotated 'Receipt', which cannot be resolved: name 'Receipt' is not defined",
    ]
    assert all(problem.startswith("task mail: ") for problem in caught.value.problems)
    assert app.registry.types == ()


@pytest.mark.parametrize("name", ["Context", "windlass.Context"])
def test_the_context_may_be_known_to_type_checkers_only(app: App, name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def send(ctx: '{name}', number: 'int') -> 'int': return number", namespace)
    task = app.task(namespace["send"])
    with pytest.raises(InvalidPayload, match="number: expected int, got str"):
        task.job("1")
    assert task.job(1).payload == '{"number":1}'


def test_a_task_is_not_registered_twice(app: App) -> None:
    task = app.task(plain)
    with pytest.raises(ConfigError, match="a task is a function, not Task"):
        app.task(task)
    with pytest.raises(ConfigError, match=r"@app\.on_start takes a function, not Task"):
        app.on_start(task)


@pytest.mark.parametrize(
    "name", ["", "a b", "a..b", "../x", "x" * 129, "a\nb", "'; DROP TABLE", "*", "naïve", ".x", 5]
)
@pytest.mark.parametrize("option", ["type", "queue"])
def test_a_bad_name_is_refused(app: App, option: str, name: Any) -> None:
    with pytest.raises(InvalidName, match=f"^{option}: "):
        app.task(**{option: name})(plain)
    assert app.registry.types == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retries": 3}, "retries: is not a task option"),
        ({"priority": 32768}, "priority: must be a whole number from -32768 to 32767"),
        ({"priority": True}, "priority: "),
        ({"max_attempts": 0}, "max_attempts: must be a whole number from 1 to 1000, not 0"),
        ({"max_attempts": "3"}, "max_attempts: "),
        ({"retry": 3}, "retry: must be Exponential, Linear, Fixed, Steps, ByError or another Backoff, not 3"),
        ({"retry": Exponential}, "retry: "),
        ({"retry": 3, "max_attempts": 2}, "retry: "),
        ({"dead_on": "ValueError"}, "dead_on: must be exception classes"),
        ({"dead_on": (ValueError, int)}, "dead_on: must be exception classes, not <class 'int'>"),
    ],
)
def test_a_bad_option_is_refused(app: App, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidOption, match=f"^{problem}"):
        app.task(**options)(plain)
    assert app.registry.types == ()


def test_one_exception_class_may_stand_without_a_tuple(app: App) -> None:
    task: Task[..., Any, Any] = app.task(dead_on=ValueError)(plain)  # type: ignore[call-overload]
    assert task.definition.dead_on == (ValueError,)


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        ({}, None),
        ({"retry": Fixed(attempts=7)}, 7),
        ({"retry": ByError({}, otherwise=Fixed(attempts=4))}, 4),
        ({"retry": Fixed(attempts=7), "max_attempts": 2}, 2),
    ],
)
def test_the_budget_of_attempts_is_said_outright_or_by_the_policy(
    app: App, options: dict[str, Any], budget: int | None
) -> None:
    assert app.task(**options)(plain).job(1).max_attempts == budget


def test_a_task_is_still_its_function(app: App) -> None:
    task = app.task(plain)
    assert task(3) == 3
    assert (task.type, task.__name__, task.__wrapped__, repr(task)) == ("plain", "plain", plain, "Task('plain')")


async def test_calling_an_async_task_gives_its_coroutine(app: App) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    assert await double(4) == 8


@pytest.mark.parametrize(
    ("declare", "error"),
    [
        (lambda app: app.queue("a b"), InvalidName),
        (lambda app: app.queue(["a"]), InvalidName),
        (lambda app: app.queue("a", max_attempts=0), InvalidOption),
        (lambda app: app.queue("a", retention={"pending": 1}), InvalidOption),
        (lambda app: app.queue("a", retention={"dead": -1}), InvalidTime),
        (lambda app: app.queue("a", retry=Fixed(base=-1)), ConfigError),
    ],
)
def test_a_bad_declaration_is_refused_where_it_is_declared(
    app: App, declare: Callable[[App], None], error: type[Exception]
) -> None:
    with pytest.raises(error):
        declare(app)
    assert app.queue_names == ("default",)


def test_a_queue_is_declared_once(app: App) -> None:
    app.queue("mail")
    with pytest.raises(ConfigError, match="'mail' is declared twice"):
        app.queue("mail", max_attempts=3)


def test_the_app_names_its_queues(app: App) -> None:
    app.task(queue="mail")(plain)
    app.queue("images")
    assert app.queue_names == ("default", "mail", "images")


def test_making_an_app_and_decorating_touch_no_file(path: Path, app: App) -> None:
    @app.task(queue="mail")
    def send(ctx: Context, number: int) -> None: ...

    app.queue("mail", max_attempts=5)
    send.job(1)
    repr(app)
    assert list(path.parent.iterdir()) == []


def test_an_app_shows_no_password() -> None:
    assert repr(App("postgresql://me:hunter2@db/jobs")) == "App('postgresql://me:***@db/jobs', 0 tasks)"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"max_retries": 5}, "did you mean max_attempts?"),
        ({"priorty": 5}, "did you mean priority?"),
        ({"bind": True}, "a parameter annotated Context gets the context"),
        ({"delay": 5}, "it is set on a job: task.using(delay=...)"),
    ],
)
def test_a_wrong_option_of_a_task_is_told_what_to_write(app: App, options: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        app.task(**options)(lambda: None)
    assert hint in str(refused.value)


def test_a_type_in_the_place_of_the_function_is_refused_with_where_it_belongs(app: App) -> None:
    with pytest.raises(ConfigError, match=r"not str; its type is given as @app\.task\(type='mail'\)"):
        app.task("mail")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("jobs.db", "jobs.db is not the address of a store: for an SQLite file, write sqlite:///jobs.db"),
        ("https://jobs.example", "is a REST server, not a store: use windlass.remote.RemoteApp"),
        (Path("jobs.db"), "should be a string such as 'sqlite:///jobs.db', not PosixPath"),
    ],
)
def test_an_odd_address_is_told_what_to_write(address: Any, advice: str) -> None:
    with pytest.raises(ConfigError) as refused:
        App(address).jobs.list()
    assert advice in str(refused.value)


@pytest.mark.parametrize("id_", [None, 5])
def test_what_is_no_id_is_shown_as_it_was_given(app: App, id_: Any) -> None:
    with pytest.raises(InvalidName, match=f"id: {id_} is not a UUID"):
        app.jobs.get(id_)
