"""windlass jobs list: all of them, as JSON Lines, with a cursor."""

import json

import pytest

from tests.cli.terminal import Terminal
from windlass import App


def fill(terminal: Terminal, jobs: int) -> list[str]:
    """Jobs; their ids, newest first."""

    def enqueue(app: App) -> list[str]:
        @app.task(type="t")
        def task(n: int) -> None: ...

        return [handle.id for handle in app.enqueue_many(task.job(n) for n in range(jobs))]

    ids: list[str] = terminal.with_app(enqueue)
    return ids[::-1]


def test_all_lists_more_than_a_page(terminal: Terminal) -> None:
    ids = fill(terminal, 1005)
    lines = terminal.ok("jobs", "list", "--all", "--json-lines").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids
    assert len(terminal.ok("jobs", "list", "--all", "--json").json) == 1005


def test_lines_go_on_after_the_cursor(terminal: Terminal) -> None:
    ids = fill(terminal, 5)
    first = terminal.ok("jobs", "list", "--json-lines", "--limit", "2")
    assert [json.loads(line)["id"] for line in first.out.splitlines()] == ids[:2]
    assert first.err == f"note: more: --cursor {ids[1]}\n"
    rest = terminal.ok("jobs", "list", "--json-lines", "--all", "--cursor", ids[1])
    assert [json.loads(line)["id"] for line in rest.out.splitlines()] == ids[2:]
    assert rest.err == ""


@pytest.mark.parametrize("words", [["--all", "--limit", "3"], ["--json", "--json-lines"]])
def test_options_that_contradict_each_other_are_refused(terminal: Terminal, words: list[str]) -> None:
    ran = terminal.run("jobs", "list", *words)
    assert ran.code == 2
    assert "cannot be given together with" in ran.err
