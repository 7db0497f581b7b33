"""windlass jobs why: sentences for users, a record for programs."""

from uuid import uuid4

import msgspec
import pytest

from tests.cli.terminal import Terminal
from windlass import Why

FIELDS = {field.name for field in msgspec.structs.fields(Why)}


def test_why_says_what_holds_a_job_and_what_to_do(terminal: Terminal) -> None:
    id_ = terminal.enqueue("mail.welcome", "{}", "--queue", "mail")
    terminal.ok("queues", "pause", "mail")
    lines = terminal.ok("jobs", "why", id_).out.splitlines()
    assert lines == [
        f"mail.welcome pending {id_}",
        "  Queue mail is paused until it is resumed.",
        "    -> windlass queues resume mail",
        "  No worker is alive.",
        "    -> windlass worker module:app --queues mail",
        "",
        "No estimate of its start (queue mail is paused without an end).",
    ]


def test_the_advice_helps(terminal: Terminal) -> None:
    id_ = terminal.enqueue()
    terminal.ok("queues", "pause", "default")
    advice = terminal.ok("jobs", "why", id_, "--json").json["reasons"][0]["do"]
    terminal.ok(*advice.split()[1:])
    codes = [reason["code"] for reason in terminal.ok("jobs", "why", id_, "--json").json["reasons"]]
    assert codes == ["no_worker"]


def test_programs_read_a_record(terminal: Terminal) -> None:
    record = terminal.ok("jobs", "why", terminal.enqueue(), "--json").json
    assert set(record) == FIELDS
    assert (record["status"], record["estimated_start"]) == ("pending", None)
    assert set(record["reasons"][0]) == {"code", "text", "do", "until", "jobs", "count", "at_least"}


def test_a_part_of_the_id_is_enough(terminal: Terminal) -> None:
    id_ = terminal.enqueue()
    assert id_ in terminal.ok("jobs", "why", id_[-8:]).out


def test_a_job_that_is_not_there_is_an_error(terminal: Terminal) -> None:
    ran = terminal.run("jobs", "why", str(uuid4()))
    assert ran.code == 1
    assert ran.err.startswith("error: no job ")


def test_what_is_wrong_with_an_id_is_said(terminal: Terminal) -> None:
    assert terminal.run("jobs", "why", "x").code == 2


def test_show_ends_with_what_holds_a_waiting_job_most(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", "{}", "--expires", "1h")
    shown = terminal.ok("jobs", "show", id_).out
    assert shown.rstrip().splitlines()[-4:] == [
        "Why it waits",
        "  No worker is alive.",
        "    -> windlass worker module:app --queues default",
        f"  1 more: windlass jobs why {id_}",
    ]
    terminal.ok("jobs", "cancel", id_)
    assert "Why it waits" not in terminal.ok("jobs", "show", id_).out


def test_a_reason_given_by_a_user_cannot_steer_the_terminal(terminal: Terminal) -> None:
    id_ = terminal.enqueue()
    terminal.ok("jobs", "cancel", id_, "--reason", "\x1b[31mred [bold]markup[/]")
    out = terminal.ok("jobs", "why", id_).out
    assert "\x1b" not in out
    assert "[bold]markup[/]" in out


def test_a_command_is_in_one_piece_in_a_narrow_window(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal.enqueue()
    id_ = terminal.enqueue()
    out = terminal.ok("jobs", "why", id_).out
    assert f"windlass jobs change {id_} --priority N\n" in out
    assert max(len(line) for line in out.splitlines() if "->" not in line and id_ not in line) <= 40
