"""One word for one thing: commands explain themselves, events have sentences, nothing is left for later."""

import inspect
import re
from typing import Any

import msgspec
import pytest
import typer

from tests.meta.tree import SOURCE, name_of, python_files
from windlass.cli.main import cli
from windlass.core import events
from windlass.core.status import Status
from windlass.observe.logs import sentence

LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|pragma: no cover)\b")


def test_nothing_in_the_source_is_left_for_later() -> None:
    left = [
        f"{name_of(path)}:{number}"
        for path in python_files(SOURCE)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if LEFT_OVER.search(line)
    ]
    assert left == []


def _commands(group: Any, path: str) -> dict[str, Any]:
    found = {path: group}
    for name, command in getattr(group, "commands", {}).items():
        found |= _commands(command, f"{path} {name}")
    return found


COMMANDS = _commands(typer.main.get_command(cli), "windlass")


def test_the_commands_are_these() -> None:
    alone = ["bench", "demo", "worker", "dev", "coordinator", "enqueue", "stats", "top", "migrate", "doctor"]
    alone += ["jobs", "dead", "queues", "schedules", "workers"]
    grouped = {
        "jobs": ["list", "show", "why", "cancel", "retry", "delete", "run", "change"],
        "dead": ["list", "retry", "purge"],
        "queues": ["list", "set", "reset", "pause", "resume", "close", "open", "purge"],
        "schedules": ["list", "show", "add", "set", "reset", "pause", "resume", "run", "remove"],
        "workers": ["list"],
    }
    words = [*alone, *grouped, *(f"{group} {verb}" for group, verbs in grouped.items() for verb in verbs)]
    assert set(COMMANDS) == {"windlass", *(f"windlass {word}" for word in words)}


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_every_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert [each.name for each in command.params if not each.help] == []


def _every_event() -> list[type[events.Event]]:
    found = [each for each in vars(events).values() if inspect.isclass(each) and issubclass(each, events.Event)]
    return [each for each in found if each is not events.Event]


@pytest.mark.parametrize("event", _every_event(), ids=lambda event: event.__name__)
def test_every_event_has_a_docstring_and_a_sentence(event: type[events.Event]) -> None:
    assert event.__doc__
    made = event(**{field.name: _example(field.type) for field in msgspec.structs.fields(event)})
    _, text = sentence(made)
    assert text != event.__name__
    assert " " in text


def test_a_worker_that_stops_by_itself_does_not_speak_of_signals_and_running_jobs() -> None:
    emptied = events.DrainStarted(worker="w", seconds=30, empty=True)
    asked = events.DrainStarted(worker="w", seconds=30)
    assert sentence(emptied)[1] == "nothing is left to do: stopping"
    assert sentence(asked)[1] == "stopping: running jobs get 30 s, a second signal ends them at once"


def test_every_kind_of_ending_has_a_sentence_that_names_it() -> None:
    for status in Status:
        ended = events.AttemptEnded(
            job="j", type="mail", queue="q", attempt=7, status=status, outcome="so it went", worker="w", error="E: no"
        )
        assert re.search("job j .mail. attempt 7 (is dead|failed|so it went)", sentence(ended)[1])


def _example(kind: Any) -> Any:
    examples: dict[Any, Any] = {str: "x", int: 1, float: 1.0, bool: False, tuple[str, ...]: ("x",)}
    examples[Status] = Status.DEAD
    return examples.get(kind)
