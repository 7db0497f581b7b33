"""Bad limits, keys and weights: an error that names the field and the limit, and nothing stored."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.abuse_input.flow import KEY_OPTIONS, KEY_WORDS, SET_WORDS, SETTINGS
from tests.abuse_input.test_refused import app, task
from tests.abuse_input.test_refused_commands import enqueuer, refused
from tests.cli.conftest import terminal
from tests.cli.terminal import Terminal
from windlass import App, Task
from windlass.core.flow.queue import Queue

__all__ = ["app", "enqueuer", "task", "terminal"]


@pytest.mark.parametrize("row", KEY_OPTIONS)
def test_a_bad_option_of_a_job_is_refused(task: Task[..., Any, Any], row: str) -> None:
    options, error, problem = KEY_OPTIONS[row]
    with pytest.raises(error, match=problem) as caught:
        task.using(**options).enqueue()
    assert len(str(caught.value)) < 500


@pytest.fixture
def untouched(app: App) -> Iterator[App]:
    """A queue that stays as it was."""
    app.queues.add("q")
    before = app.queues.set("q", max_concurrency=5, weights={"acme": 2})
    yield app
    assert app.queues.list() == [before]


@pytest.mark.parametrize("row", SETTINGS)
def test_a_bad_setting_is_refused_and_nothing_is_set(untouched: App, row: str) -> None:
    options, error, problem = SETTINGS[row]
    with pytest.raises(error, match=problem) as caught:
        untouched.queues.set("q", **{"fair": True, **options})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("row", SETTINGS)
def test_a_bad_declaration_is_refused_where_it_is_written(row: str) -> None:
    options, error, problem = SETTINGS[row]
    declaring = App("sqlite:///never-opened.db")
    with pytest.raises(error, match=problem):
        declaring.queue("q", **options)
    declaring.queue("q")
    assert declaring.queue_names == ("default", "q")


@pytest.mark.parametrize("row", SET_WORDS)
def test_a_bad_setting_is_refused_on_the_command_line(terminal: Terminal, row: str) -> None:
    words, problem = SET_WORDS[row]
    terminal.ok("queues", "add", "mail")
    terminal.ok("queues", "pause", "mail")
    refused(terminal.run("queues", "set", "mail", *words), "^" + _literal(problem))
    assert terminal.with_app(lambda app: app.queues.list()) == [Queue(name="mail", paused=True)]


@pytest.mark.parametrize("row", KEY_WORDS)
def test_a_bad_option_of_a_job_is_refused_on_the_command_line(enqueuer: Terminal, row: str) -> None:
    words, problem = KEY_WORDS[row]
    refused(enqueuer.run("enqueue", "t", "{}", *words), "^" + _literal(problem))


def _literal(text: str) -> str:
    return "".join(f"[{each}]" if each in ".[]()*+?" else each for each in text)
