"""Aliases for renamed tasks, and tasks in modules that do not know their app."""

from typing import Any

import pytest

from tests.support.seed import nothing
from windlass import App, ConfigError, InvalidName, InvalidOption, TaskSet, UseAsync


def test_a_task_is_known_under_its_aliases_and_enqueues_under_its_type(app: App) -> None:
    @app.task(type="img.resize", aliases=["resize", "resize_image"])
    def resize(width: int) -> int:
        return width

    assert app.registry.types == ("img.resize", "resize", "resize_image")
    assert [definition.type for definition in app.registry] == ["img.resize"]
    assert app.registry.get("resize") is app.registry.get("img.resize")
    assert resize.job(1).type == "img.resize"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "a"}, {"type": "b", "aliases": ["a"]}),
        ({"type": "a", "aliases": ["b"]}, {"type": "b"}),
        ({"type": "a", "aliases": ["c"]}, {"type": "b", "aliases": ["d", "c"]}),
    ],
)
def test_an_alias_that_is_taken_is_refused_and_both_places_named(
    app: App, one: dict[str, Any], other: dict[str, Any]
) -> None:
    def first() -> None: ...

    def second() -> None: ...

    app.task(**one)(first)
    with pytest.raises(ConfigError) as caught:
        app.task(**other)(second)
    for function in (first, second):
        assert f"{__file__}:{function.__code__.co_firstlineno}" in str(caught.value)
    assert "b" not in app.registry or one.get("aliases") == ["b"]


@pytest.mark.parametrize("aliases", ["old", 7, ["t"], ["old", "old"]])
def test_aliases_that_make_no_sense_are_refused(app: App, aliases: Any) -> None:
    with pytest.raises(InvalidOption, match="aliases"):
        app.task(type="t", aliases=aliases)(nothing)
    with pytest.raises(InvalidName, match=r"aliases\[1\]"):
        app.task(type="t", aliases=["fine", "not fine"])(nothing)


def test_a_set_belongs_to_an_app_once_it_is_included(app: App) -> None:
    tasks = TaskSet(prefix="mail.")

    @tasks.task
    def send(to: str) -> str:
        return to

    @tasks.task(type="fetch", aliases=["old.fetch"])
    async def fetch() -> None: ...

    assert send("me") == "me"
    app.include(tasks)
    assert app.registry.types == ("mail.fetch", "mail.send", "old.fetch")
    assert send.job("you").type == send.type == "mail.send"
    assert app.jobs.get(send.enqueue("you").id).payload == {"to": "you"}

    @tasks.task
    def late() -> None: ...

    assert "mail.late" in app.registry
    assert app.jobs.get(late.enqueue().id).type == "mail.late"


async def test_enqueueing_before_that_is_an_error_that_says_what_to_do() -> None:
    tasks = TaskSet()

    @tasks.task
    def send() -> None: ...

    with pytest.raises(ConfigError, match=r"of .*test_tasksets.py:\d+ is in no app yet: enqueue after app.include"):
        await send.aenqueue()
    with pytest.raises(UseAsync):
        send.enqueue()


def test_enqueuing_before_that_blocks_nothing() -> None:
    tasks = TaskSet()

    @tasks.task
    def send() -> None: ...

    with pytest.raises(ConfigError, match="is in no app yet"):
        send.enqueue()


def test_a_set_is_included_once(app: App) -> None:
    tasks = TaskSet()
    app.include(tasks)
    for other in (app, App("sqlite:///never-opened.db")):
        with pytest.raises(ConfigError, match="belongs to one app, once"):
            other.include(tasks)


def test_a_type_that_the_app_has_already_is_refused(app: App) -> None:
    tasks = TaskSet()

    @tasks.task(type="send")
    def send() -> None: ...

    @app.task(type="send")
    def own() -> None: ...

    with pytest.raises(ConfigError, match="two tasks have the type 'send'"):
        app.include(tasks)


def test_the_hooks_of_a_set_come_after_those_before_it(app: App) -> None:
    tasks = TaskSet()
    app.on_start(_one)
    tasks.on_start(_two)
    tasks.on_stop(_two)
    app.include(tasks)
    tasks.on_start(_three)
    assert [hook.function for hook in app.hooks.start] == [_one, _two, _three]
    assert [hook.function for hook in app.hooks.stop] == [_two]


def _one() -> None: ...


def _two() -> None: ...


def _three() -> None: ...


def test_a_prefix_must_make_a_legal_type() -> None:
    with pytest.raises(InvalidName, match="type"):
        TaskSet(prefix="not fine ").task(_one)


def test_the_schedules_of_a_set_are_declared_by_its_app(app: App) -> None:
    tasks = TaskSet(prefix="mail.")

    @tasks.schedule("0 9 * * *")
    @tasks.task
    def digest() -> None: ...

    @tasks.task
    def clean(days: int) -> None: ...

    tasks.schedule("clean-up", clean.using(queue="low").job(7), every="6h")
    assert app.schedules.list() == []
    app.include(tasks)
    assert [(each.name, each.rules.job.type) for each in app.schedules.list()] == [
        ("clean-up", "mail.clean"),
        ("mail.digest", "mail.digest"),
    ]
    assert "low" in app.queue_names
    tasks.schedule("late", clean.job(1), every="1h")
    assert app.schedules.get("late").rules.job.payload == '{"days":1}'


def test_a_schedule_that_the_app_has_already_is_refused(app: App) -> None:
    tasks = TaskSet()
    job = tasks.task(type="clean")(_one).job()
    tasks.schedule("daily", job, every=60)
    app.schedule("daily", app.task(type="other")(_two).job(), every=60)
    with pytest.raises(ConfigError, match="schedule 'daily' is declared twice"):
        app.include(tasks)
