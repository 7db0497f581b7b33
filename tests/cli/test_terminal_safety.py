"""Text from strangers reaches the terminal as text: nothing in it is obeyed."""

import json
from random import Random

import pytest

from tests.cli.terminal import Terminal
from tests.client.labour import Labour
from windlass import App
from windlass.core.jobs.job import JobError, LogLine
from windlass.core.jobs.outcome import Policy, Raised, decide
from windlass.core.jobs.retry import Fixed
from windlass.core.moments import to_datetime
from windlass.store.records import Note

EVIL = "\x1b[31mred\x1b]0;title\x07 \x9b1m \x00 \u202e \r\x08 \\[/nonsense] [bold]markup[/] [link=x] :smile: \x7f"
OBEYED = set("\x1b\x07\x9b\x00\u202e\r\x08\x7f")


@pytest.fixture
def evil(terminal: Terminal) -> str:
    """A job whose payload, error, history and log were written by an attacker of the terminal."""
    id_ = terminal.enqueue("t", json.dumps({"text": EVIL}), "--max-attempts", "1")
    terminal.with_app(poison)
    return id_


def poison(app: App) -> None:
    app._portal().run(_poison(app))


async def _poison(app: App) -> None:
    store = await app._ready()
    job = await Labour(app).aclaim(store)
    line = LogLine(to_datetime(0), job.attempt, EVIL)
    await store.jobs.note([Note(id=job.id, queue=job.queue, attempt=job.attempt, lines=(line,))])
    outcome = Raised(ValueError(EVIL), JobError(f"shop.{EVIL}", EVIL, f"Traceback\n{EVIL}"))
    await store.jobs.settle([decide(job, outcome, Policy(Fixed()), Random(0))])


@pytest.mark.parametrize(
    "words",
    [["jobs", "list"], ["dead", "list"], ["jobs", "list", "--json"], ["dead", "list", "--json"]],
    ids=" ".join,
)
def test_a_list_prints_nothing_that_a_terminal_obeys(terminal: Terminal, evil: str, words: list[str]) -> None:
    out = terminal.ok(*words).out
    assert evil in out
    assert OBEYED & set(out) == set()


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_job_is_shown_with_nothing_that_a_terminal_obeys(terminal: Terminal, evil: str, words: list[str]) -> None:
    out = terminal.ok("jobs", "show", evil, *words).out
    assert OBEYED & set(out) == set()


def test_what_looks_like_markup_is_shown_as_it_is(terminal: Terminal, evil: str) -> None:
    out = terminal.ok("jobs", "show", evil).out
    assert r"\[/nonsense] [bold]markup[/] [link=x] :smile:" in out


def test_programs_still_get_every_character(terminal: Terminal, evil: str) -> None:
    job = terminal.ok("jobs", "show", evil, "--json").json
    assert job["payload"] == {"text": EVIL}
    assert job["error"]["message"] == EVIL
    assert job["logs"][0]["text"] == EVIL


def test_other_scripts_are_not_escaped(terminal: Terminal) -> None:
    terminal.enqueue("t", '{"name": "Zoë 张 🧵"}')
    assert "Zoë 张 🧵" in terminal.ok("jobs", "list", "--json").out


def test_an_error_message_cannot_recolour_the_terminal_either(terminal: Terminal) -> None:
    ran = terminal.run("enqueue", EVIL.replace("\x00", ""))
    assert ran.code == 2
    assert OBEYED & set(ran.err) == set()


@pytest.mark.parametrize(
    "words",
    [["list"], ["show"], ["show", "--json"], ["cancel", "--reason", EVIL]],
    ids=["list", "show", "json", "cancel"],
)
def test_names_and_reasons_of_flows_print_nothing_that_a_terminal_obeys(terminal: Terminal, words: list[str]) -> None:
    name = EVIL.replace("\x00", "")
    words = [word.replace("\x00", "") for word in words]

    def store(app: App) -> None:
        @app.task
        def step() -> None: ...

        with app.flow(name) as flow:
            flow.add(step.job(), name=name)

    terminal.with_app(store)
    verb, *options = words
    out = terminal.ok("flows", verb, *([] if verb == "list" else [name]), *options).out
    assert "nonsense" in out
    assert OBEYED & set(out) == set()
