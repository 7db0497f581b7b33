"""Typical mistakes of a new user: the error says what to write instead."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from windlass import App, Steps, TaskSet, chain
from windlass.errors import ConfigError, InvalidInput
from windlass.testing import assert_enqueued, run_all


@pytest.fixture
def app() -> Iterator[App]:
    made = App.testing()

    @made.task
    def mail(to: str) -> str:
        return to

    @made.task
    def bare(ctx, number: int) -> None: ...  # type: ignore[no-untyped-def]

    yield made
    made.close()


Wrong = Callable[[Any], Any]
"""A mistake that a type checker would refuse, hence Any."""


class Opaque:
    """Is no JSON, and no dataclass."""


_run: Any = run_all
_chain: Any = chain
_steps: Any = Steps


def _nothing() -> None: ...


def _opaque(app: App) -> None:
    def store(what: Opaque) -> None: ...

    app.task(store).enqueue(Opaque())


ATTRIBUTES: list[tuple[str, Wrong, str]] = [
    ("Task", lambda app: app.tasks["mail"].delay, "use enqueue(...)"),
    ("Handle", lambda app: app.enqueue("mail", {"to": "x"}).get(), "use result(timeout=10)"),
    ("Handle", lambda app: app.enqueue("mail", {"to": "x"}).ready(), "use status, or job().finished"),
    ("Handle", lambda app: app.enqueue("mail", {"to": "x"}).using(delay=1), "options come first: task.using"),
    ("Chain", lambda app: _chain(app.tasks["mail"].job("x")).delay(), "use enqueue()"),
    ("App", lambda app: app.send_task("mail"), 'use enqueue("type"'),
    ("App", lambda app: app.AsyncResult("x"), "use Handle(app, id)"),
    ("App", lambda app: app.conf, "settings are arguments of App"),
    ("App", lambda app: app.nothing, "has no attribute 'nothing'"),
]


@pytest.mark.parametrize(("owner", "wrong", "hint"), ATTRIBUTES)
def test_names_of_other_queues_are_answered_with_ours(app: App, owner: str, wrong: Wrong, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        wrong(app)
    assert str(caught.value).startswith(f"'{owner}' object has no attribute")
    assert hint in str(caught.value)


CALLS: list[tuple[Wrong, str]] = [
    (
        lambda app: app.queue("x", concurrency=3),
        "did you mean max_concurrency?",
    ),
    (lambda app: app.schedule("x", app.tasks["mail"].job("x"), minutes=5), "did you mean every?"),
    (lambda app: app.jobs.list(state="dead"), "state: is not a filter; did you mean status?"),
    (lambda app: app.jobs.list(status="done"), "cancelled; did you mean completed?"),
    (lambda app: app.enqueue("mail", to="x"), "to: is an argument: give it in the payload, {'to': ...}"),
    (lambda app: app.enqueue("bare", {"number": 3}), "to get the context, annotate it: ctx: Context"),
    (_opaque, "Opaque cannot be stored as JSON; a dataclass, a msgspec struct, a pydantic model"),
    (lambda app: app.task(autoretry_for=(OSError,))(print), "every exception is retried; dead_on=(...)"),
    (lambda app: _run(app, queue="x"), "queue: is not an option of run_all; did you mean queues?"),
    (lambda app: assert_enqueued(app, "mail", priority=3), "count, queue and delay are compared here"),
]


@pytest.mark.parametrize(("wrong", "message"), CALLS)
def test_a_wrong_option_is_answered_with_the_right_one(app: App, wrong: Wrong, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        wrong(app)
    assert message in str(caught.value)


DECLARED: list[tuple[Wrong, str]] = [
    (lambda app: app.include(sys), "include takes a TaskSet, not module; for a module, give its set"),
    (lambda app: App.testing().task(app.tasks["mail"]), "it is a task already, and belongs to one app or set"),
    (lambda _: TaskSet().task(_nothing).enqueue(), "enqueue after app.include"),
    (lambda _: _steps([1, 5]), "such as Steps(1, '30s')"),
]


@pytest.mark.parametrize(("wrong", "message"), DECLARED)
def test_what_cannot_be_declared_is_said(app: App, wrong: Wrong, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wrong(app)
    assert message in str(caught.value)
