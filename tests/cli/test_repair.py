"""A dead job gets another payload, and is retried with it."""

import sys

import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_jobs import kill

SHOP = """
from windlass import App

app = App("sqlite:///windlass.db")


@app.task(type="t")
def task(n: int = 0) -> None: ...
"""


@pytest.fixture
def dead(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a dead job, beside an app that knows its task."""
    monkeypatch.delitem(sys.modules, "repair_shop", raising=False)
    (terminal.folder / "repair_shop.py").write_text(SHOP)
    return kill(terminal)[0]


@pytest.mark.parametrize("group", ["dead", "jobs"])
def test_a_dead_job_is_retried_with_another_payload(terminal: Terminal, dead: str, group: str) -> None:
    ran = terminal.ok(group, "retry", dead, "--payload", '{"n": 2}')
    assert "the arguments were not checked" in ran.err
    job = terminal.ok("jobs", "show", dead, "--json").json
    assert (job["status"], job["payload"]) == ("pending", {"n": 2})


def test_change_repairs_a_dead_job_which_stays_dead(terminal: Terminal, dead: str) -> None:
    said = terminal.ok("jobs", "change", dead, "--payload", '{"n": 2}', "--app", "repair_shop:app").out
    assert said.startswith(f"{dead} is dead")
    assert terminal.ok("jobs", "show", dead, "--json").json["payload"] == {"n": 2}
    refused = terminal.run("jobs", "change", dead, "--payload", '{"n": 2}', "--priority", "5")
    assert (refused.code, refused.err) == (1, f"error: cannot change job {dead}: it is dead\n")


def test_the_payload_is_checked_by_the_task_of_the_app(terminal: Terminal, dead: str) -> None:
    for words in (["dead", "retry"], ["jobs", "change"]):
        ran = terminal.run(*words, dead, "--payload", '{"n": "two"}', "--app", "repair_shop:app")
        assert ran.code == 2
        assert "error: n: " in ran.err
    job = terminal.ok("jobs", "show", dead, "--json").json
    assert (job["status"], job["payload"]) == ("dead", {})


def test_a_payload_is_for_one_job(terminal: Terminal, dead: str) -> None:
    for words in ([dead, dead], ["--all"]):
        ran = terminal.run("dead", "retry", *words, "--payload", "{}")
        assert ran.code == 2
        assert "--payload is for one job" in ran.err
    assert terminal.ok("jobs", "show", dead, "--json").json["status"] == "dead"


def test_a_cancelled_job_keeps_its_payload(terminal: Terminal) -> None:
    id_ = terminal.enqueue()
    terminal.ok("jobs", "cancel", id_)
    ran = terminal.run("jobs", "retry", id_, "--payload", "{}")
    assert (ran.code, ran.err) == (1, f"error: cannot change job {id_}: it is cancelled\n")
