"""The same rubbish on the command line: exit code 2, one line that names the field and the limit, nothing stored."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.abuse_input.rows import BAD_NAMES, PAYLOADS, TEXTS, WORDS
from tests.cli.conftest import terminal
from tests.cli.terminal import Ran, Terminal

__all__ = ["terminal"]

ENQUEUER = """
from typing import Any
from tests.abuse_input.rows import Reading
from windlass import App
app = App("sqlite:///windlass.db?durability=relaxed")
@app.task(type="t")
def task(thing: Any = None, number: int = 0, reading: Reading | None = None) -> None: ...
"""


@pytest.fixture
def enqueuer(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal beside the same app that the library's tests use; and a look afterwards that nothing was stored."""
    (terminal.folder / "enqueuer.py").write_text(ENQUEUER)
    monkeypatch.setenv("WINDLASS_APP", "enqueuer:app")
    monkeypatch.delitem(sys.modules, "enqueuer", raising=False)
    yield terminal
    if "enqueuer" in sys.modules:
        sys.modules["enqueuer"].app.close()
    monkeypatch.delenv("WINDLASS_APP")
    assert terminal.ok("stats", "--json").json["queues"] == {}


def refused(ran: Ran, problem: str) -> None:
    """One line, the right one."""
    assert (ran.code, ran.out) == (2, ""), ran
    said = " ".join(ran.err.replace("│", " ").split())
    assert re.search(problem.replace("^", "^error: "), said), said
    assert "Traceback" not in ran.err
    assert len(ran.err) < 1000


@pytest.mark.parametrize("row", [row for row, payload in PAYLOADS.items() if payload.text is not None])
def test_a_payload_that_the_library_refuses_is_refused_in_the_same_words(enqueuer: Terminal, row: str) -> None:
    _, problem, text = PAYLOADS[row]
    assert text is not None
    refused(enqueuer.run("enqueue", "t", text), problem)


@pytest.mark.parametrize("row", TEXTS)
def test_text_that_is_no_payload_is_refused(enqueuer: Terminal, row: str) -> None:
    text, problem = TEXTS[row]
    refused(enqueuer.run("enqueue", "t", text), "^" + re.escape(problem))


@pytest.mark.parametrize("size", [65_537, 50_000_000], ids=["15 one byte too many", "16 50 MB"])
def test_a_payload_over_the_limit_is_refused_with_its_size_and_the_limit(enqueuer: Terminal, size: int) -> None:
    text = '{"thing":"' + "x" * (size - len('{"thing":""}')) + '"}'
    refused(enqueuer.run("enqueue", "t", text), f"^payload: is {size:,} bytes of JSON, the limit is 65,536")


@pytest.mark.parametrize("row", [row for row, name in BAD_NAMES.items() if isinstance(name, str)])
def test_a_bad_name_is_refused(enqueuer: Terminal, row: str) -> None:
    refused(enqueuer.run("enqueue", "t", "{}", "--queue", BAD_NAMES[row]), "^queue: .* is not 1 to 128 of the char")
    refused(enqueuer.run("enqueue", "--", BAD_NAMES[row]), "^type: .* is not 1 to 128 of the characters")


@pytest.mark.parametrize("name", ["os.system..x", "__import__('os')", "a..b", "os;system"])
def test_nothing_is_imported_by_a_jobs_type(enqueuer: Terminal, name: str) -> None:
    refused(enqueuer.run("enqueue", name), "^type: ")


def test_a_type_that_the_app_does_not_know_is_refused_with_those_it_knows(enqueuer: Terminal) -> None:
    ran = enqueuer.run("enqueue", "os.system")
    assert (ran.code, ran.err) == (2, "error: no task of type 'os.system'; there are t\n")


@pytest.mark.parametrize("row", WORDS)
def test_a_bad_option_is_refused(enqueuer: Terminal, row: str) -> None:
    words, problem = WORDS[row]
    refused(enqueuer.run("enqueue", "t", "{}", *words), re.escape(problem))


def test_rubbish_in_every_argument_at_once_is_still_one_line(enqueuer: Terminal, tmp_path: Path) -> None:
    ran = enqueuer.run("enqueue", "\x1b[31m", "{", "--queue", "\u202e", "--delay", "\n")
    refused(ran, "^")
    assert "\x1b" not in ran.err
