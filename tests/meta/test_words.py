"""One word for one thing: names and sentences use no retired word, commands and events explain themselves."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from tests.meta.tree import BENCH, ROOT, SOURCE, TESTS, name_of, python_files, text_files
from windlass.cli.main import cli
from windlass.core import events
from windlass.core.status import Status
from windlass.observe.logs import sentence

GLOSSARY = ROOT / "docs" / "glossary.md"
RETIRED = Path(__file__).parent / "retired_words.txt"
MAX_WORDS = 40
PERSON = re.compile(r"\b(nobody|somebody|whoever|who comes|who waits|whom|everybody|anybody)\b", re.IGNORECASE)
NAMELESS_NUMBER = re.compile(r"\b(at most|only|after|every|for|in) so (many|long|often)\b", re.IGNORECASE)
PERSON_IN_NAME = re.compile(
    r"(^|_)(nobodys?|somebody|whoever|whom|everybody|anybody)(_|$)|(?<!user)(?<!operator)(?<!operators)(^|_)who_"
)
PERSON_IN_TEXT = re.compile(
    r"\b(whoever|who comes|who waits|whom|everybody|anybody)\b"
    r"|(?<![\"'/:`])(?<!as )(?<!user )(?<!MAINTAINER )\b(nobody|somebody)\b(?![\"'.@:`]| else\")",
    re.IGNORECASE,
)
"""Not the Unix account, and no names of jobs, tags and users in quotes."""
ACCOUNT = {"AS_NOBODY", "NOBODY", "as_nobody"}
"""Names of the Unix account `nobody`."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
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
    alone += ["jobs", "dead", "queues", "schedules", "flows", "workers", "serve", "token", "audit", "scale"]
    alone += ["webhooks", "check-worker"]
    grouped = {
        "jobs": ["list", "show", "why", "cancel", "retry", "delete", "run", "change"],
        "dead": ["list", "retry", "purge"],
        "queues": ["list", "add", "set", "reset", "pause", "resume", "close", "open", "purge"],
        "schedules": ["list", "show", "add", "set", "reset", "pause", "resume", "run", "remove", "prune"],
        "flows": ["list", "show", "cancel", "retry"],
        "workers": ["list"],
        "webhooks": ["list", "show", "add", "test", "pause", "resume", "rotate", "remove"],
        "token": ["create", "list", "revoke", "rotate"],
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


WORDS = dict(line.split(" = ") for line in RETIRED.read_text().splitlines() if re.match(r"[a-z ]+ = ", line))
SINGLE = {word for word in WORDS if word.isalpha()}
PHRASES = re.compile("|".join(rf"\b{word}\b" for word in sorted(WORDS.keys() - SINGLE)))
RECORDS = {"docs/benchmarks/README.md"}
"""Pages with names of an earlier code: what was measured."""


def retired(text: str) -> set[str]:
    """The retired words and phrases in a text: in code, in strings, in comments, in sentences."""
    parts = {part.lower() for part in _PART.findall(text)}
    return (parts & SINGLE) | set(PHRASES.findall(re.sub(r"[_\s-]+", " ", text).lower()))


def _bound(name: str) -> bool:
    return re.match(r"(MOST|LONGEST|SHORTEST|LARGEST|SMALLEST)(_|$)", name) is not None


def names(path: Path) -> Iterator[str]:
    """Every name that a Python file defines or uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def persons_in_names(path: Path) -> set[str]:
    """Names that call a row, a process or a call a person."""
    return {name for name in names(path) if PERSON_IN_NAME.search(name)} - ACCOUNT


def source_files() -> list[Path]:
    """Python, SQL and Lua of the package."""
    return [*python_files(SOURCE), *sorted(SOURCE.rglob("*.sql")), *sorted(SOURCE.rglob("*.lua"))]


def other_files() -> list[Path]:
    """Python that is not in the wheel."""
    return [path for folder in (TESTS, BENCH, ROOT / "tools") for path in python_files(folder)]


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Where each docstring is, and its text."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name_of(path)}:{getattr(node, 'lineno', 1)}", ast.get_docstring(node) or ""


def persons(files: list[Path]) -> list[str]:
    """Docstrings that call a row, a process or a call a person; `nobody` in backticks is an account."""
    return [
        place
        for path in files
        for place, text in docstrings(path)
        if PERSON.search(re.sub(r"`nobody`|user nobody", "", text))
    ]


def test_the_glossary_has_at_most_forty_words_each_once() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", GLOSSARY.read_text(), re.MULTILINE)
    words = [row for row in rows if row not in ("word", "---")]
    assert len(words) == len(set(words))
    assert 0 < len(words) <= MAX_WORDS


def test_no_word_of_the_glossary_is_retired() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", GLOSSARY.read_text(), re.MULTILINE)
    assert set(rows) & set(WORDS) == set()


def test_no_file_and_no_name_of_a_file_uses_a_retired_word() -> None:
    paths = [
        path
        for path in text_files()
        if path not in (RETIRED, GLOSSARY, Path(__file__)) and name_of(path) not in RECORDS
    ]
    wrong = {name_of(path): retired(f"{name_of(path)}\n{path.read_text()}") for path in paths}
    assert {name: words for name, words in wrong.items() if words} == {}


PLANTED = {
    "an identifier": "class BerthKeeper: ...",
    "a function": "def read_lane(self) -> None: ...",
    "a table": "CREATE TABLE windlass.shelves (id uuid);",
    "a column": "    mail_lane integer NOT NULL,",
    "a key on Redis": 'return f"{prefix}:{queue}:lane"',
    "a local of Lua": "local purse = redis.call('HGET', K.purse, id)",
    "an event": 'emit(Event(kind="runner.buried"))',
    "a metric": 'Counter("windlass_handed_back_total", "...")',
    "an option": 'typer.Option("--hand-in")',
    "a comment": "# The job stands in line.",
    "an error": 'raise InvalidOption("queue", "has been put aside")',
    "a sentence": "A job is handed\nback when its worker stops.",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_retired_word_is_found_wherever_it_is(kind: str) -> None:
    assert retired(PLANTED[kind])


def test_bounds_are_called_max_and_min() -> None:
    wrong = {name_of(path): {*filter(_bound, names(path))} for path in [*python_files(SOURCE), *other_files()]}
    assert {name: names for name, names in wrong.items() if names} == {}


def test_docstrings_call_no_row_or_process_a_person() -> None:
    assert persons([*python_files(SOURCE), *other_files()]) == []


def test_no_message_comment_statement_or_page_of_the_wheel_makes_a_person_of_anything() -> None:
    files = [*source_files(), *sorted(SOURCE.rglob("*.html")), *sorted(SOURCE.rglob("*.js"))]
    wrong = [
        f"{name_of(path)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PERSON.search(line) or NAMELESS_NUMBER.search(line)
    ]
    assert wrong == []


def test_no_name_outside_the_wheel_makes_a_person_of_anything() -> None:
    wrong = {name_of(path): persons_in_names(path) for path in other_files()}
    assert {name: words for name, words in wrong.items() if words} == {}


def test_no_comment_or_message_outside_the_wheel_makes_a_person_of_anything() -> None:
    wrong = [
        f"{name_of(path)}:{number}"
        for path in other_files()
        if path not in (Path(__file__), ROOT / "tools" / "measures.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PERSON_IN_TEXT.search(line.replace("NOBODY", ""))
    ]
    assert wrong == []
