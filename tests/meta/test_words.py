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

from tests.meta.tree import BENCH, ROOT, SOURCE, TESTS, markdown_files, name_of, python_files
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
    r"(^|_)(nobody|somebody|whoever|whom|everybody|anybody)(_|$)|(?<!user)(?<!operator)(?<!operators)(^|_)who_"
)
ACCOUNT = {"AS_NOBODY", "NOBODY", "as_nobody"}
"""Names of the Unix account `nobody`."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_COMMENT = re.compile(r"--.*|/\*.*?\*/", re.DOTALL)
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
    alone += ["webhooks"]
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


def _retired() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Retired words with what to say instead, and the words that still occur, by folder."""
    words: dict[str, str] = {}
    allowed: dict[str, set[str]] = {}
    for line in RETIRED.read_text().splitlines():
        if " = " in line:
            word, _, instead = line.partition(" = ")
            words[word] = instead
        elif ": " in line and not line.startswith("#"):
            folder, _, listed = line.partition(": ")
            allowed[folder] = {each.strip() for each in listed.split(",")}
    return words, allowed


WORDS, ALLOWED = _retired()


def _folder(path: Path) -> str:
    """The folder that a file counts to: a store, a part of the package, or the documentation."""
    parts = path.relative_to(ROOT).parts
    if parts[0] != "src":
        return "docs"
    depth = 4 if parts[2] == "store" and len(parts) > 4 else 3
    return "/".join(parts[:depth])


def _names(path: Path) -> Iterator[str]:
    """Every name that a file defines or uses; of SQL and Lua every word outside comments."""
    yield path.stem
    if path.suffix != ".py":
        text = path.read_text()
        yield from _WORD.findall("\n".join(_COMMENT.sub("", line) for line in text.splitlines()))
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def retired_names(path: Path) -> set[str]:
    """The retired words among the parts of a file's names."""
    single = {word for word in WORDS if " " not in word and "-" not in word}
    parts = {part.lower() for name in _names(path) for part in _PART.findall(name)}
    joined = {name.lower().strip("_").replace("_", " ") for name in _names(path)}
    phrases = {word for word in WORDS if " " in word and any(re.search(rf"\b{word}\b", name) for name in joined)}
    return (parts & single) | phrases


def retired_in_prose(text: str) -> set[str]:
    """The retired words and phrases in the sentences of a document."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL).lower()
    return {word for word in WORDS if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)}


def persons_in_names(path: Path) -> set[str]:
    """Names that call a row, a process or a call a person."""
    return {name for name in _names(path) if PERSON_IN_NAME.search(name)} - ACCOUNT


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


def test_no_name_uses_a_retired_word() -> None:
    wrong = {name_of(path): retired_names(path) - ALLOWED.get(_folder(path), set()) for path in source_files()}
    assert {name: words for name, words in wrong.items() if words} == {}


def test_no_sentence_of_the_documents_uses_a_retired_word() -> None:
    documents = [path for path in markdown_files() if path != GLOSSARY]
    wrong = {name_of(path): retired_in_prose(path.read_text()) - ALLOWED.get("docs", set()) for path in documents}
    assert {name: words for name, words in wrong.items() if words} == {}


def test_a_word_that_is_still_allowed_still_occurs() -> None:
    found: dict[str, set[str]] = {}
    for path in source_files():
        found.setdefault(_folder(path), set()).update(retired_names(path))
    for path in markdown_files():
        found.setdefault("docs", set()).update(set() if path == GLOSSARY else retired_in_prose(path.read_text()))
    stale = {folder: words - found.get(folder, set()) for folder, words in ALLOWED.items()}
    assert {folder: words for folder, words in stale.items() if words} == {}


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


def test_no_name_outside_the_wheel_uses_a_retired_word_or_a_person() -> None:
    wrong = {name_of(path): retired_names(path) | persons_in_names(path) for path in other_files()}
    assert {name: words for name, words in wrong.items() if words} == {}


def test_no_docstring_outside_the_wheel_uses_a_retired_word() -> None:
    wrong = {place: retired_in_prose(text) for path in other_files() for place, text in docstrings(path)}
    assert {place: words for place, words in wrong.items() if words} == {}
