"""windlass jobs run and change; ids by their beginning; the newer options of enqueue."""

import pytest

from tests.cli.terminal import Terminal


def test_enqueue_takes_what_a_program_may_say(terminal: Terminal) -> None:
    parent = terminal.enqueue()
    words = ["--key", "k", "--window", "1h", "--on-conflict", "replace", "--expires", "10m", "--parent", parent]
    id_ = terminal.enqueue("t", "{}", *words, "--tag", "a", "--tag", "b", "--meta", '{"by": "me"}')
    job = terminal.ok("jobs", "show", id_, "--json").json
    assert (job["idempotency_key"], job["idempotency_window"], job["parent"]) == ("k", 3600, parent)
    assert (job["tags"], job["meta"]) == (["a", "b"], {"by": "me"})
    assert job["expires_at"] > job["created_at"]
    shown = terminal.ok("jobs", "show", id_).out
    for fact in ("k (taken for 1h after its end)", parent, "a, b", '{"by": "me"}', "expires"):
        assert fact in shown
    assert [job["id"] for job in terminal.ok("jobs", "list", "--tag", "b", "--json").json] == [id_]
    assert [job["id"] for job in terminal.ok("jobs", "list", "--parent", parent, "--json").json] == [id_]


def test_enqueue_replaces_or_refuses(terminal: Terminal) -> None:
    first = terminal.enqueue("t", "{}", "--key", "k")
    second = terminal.enqueue("t", "{}", "--key", "k", "--on-conflict", "replace")
    assert terminal.ok("jobs", "show", first, "--json").json["reason"] == f"replaced by {second}"
    refused = terminal.run("enqueue", "t", "--key", "k", "--on-conflict", "raise")
    assert (refused.code, refused.err) == (1, f"error: idempotency key 'k' is held by job {second}\n")


def test_run_lets_a_job_run_now(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", "{}", "--delay", "1h")
    assert terminal.ok("jobs", "run", id_).out == f"{id_} is pending\n"
    terminal.ok("jobs", "cancel", id_)
    refused = terminal.run("jobs", "run", id_)
    assert (refused.code, refused.err) == (1, f"error: cannot run job {id_}: it is cancelled\n")


def test_change_shows_the_job_as_it_is_now(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", "{}")
    words = ["--priority", "5", "--delay", "1h", "--payload", '{"n": 1}', "--queue", "mail"]
    said = terminal.ok("jobs", "change", id_, *words).out
    assert said.startswith(f"{id_} is scheduled in queue mail, priority 5, due in ")
    job = terminal.ok("jobs", "show", id_, "--json").json
    assert (job["payload"], job["queue"], job["priority"], job["status"]) == ({"n": 1}, "mail", 5, "scheduled")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2090-01-31T09:00", "2090-01-31T09:00:00Z"),
        ("2090-01-31 09:00:30+01:00", "2090-01-31T08:00:30Z"),
        ("2090-01-31", "2090-01-31T00:00:00Z"),
    ],
)
def test_a_moment_is_in_utc_unless_it_says_otherwise(terminal: Terminal, text: str, moment: str) -> None:
    id_ = terminal.enqueue()
    assert terminal.ok("jobs", "change", id_, "--run-at", text, "--json").json["run_at"] == moment


WRONG = {
    "nothing": ([], "change: nothing to change; there are priority, run_at, delay, payload, queue"),
    "no moment": (["--run-at", "tomorrow"], "--run-at: 'tomorrow' is not a moment such as 2026-01-31T09:00+01:00"),
    "no duration": (["--delay", "soon"], "--delay: 'soon' is not a duration"),
    "both": (["--delay", "1s", "--run-at", "2090-01-01"], "delay: cannot be given together with run_at"),
    "no object": (["--payload", "[]"], "payload: must be a JSON object, not list"),
    "no JSON": (["--payload", "{"], "payload: is not JSON"),
    "no queue": (["--queue", "a b"], "queue: 'a b' is not 1 to 128"),
    "no priority": (["--priority", "99999"], "priority: must be a whole number from -32768 to 32767"),
}


@pytest.mark.parametrize("row", WRONG)
def test_a_wrong_change_is_refused(terminal: Terminal, row: str) -> None:
    words, problem = WRONG[row]
    id_ = terminal.enqueue()
    before = terminal.ok("jobs", "show", id_, "--json").json
    ran = terminal.run("jobs", "change", id_, *words)
    assert (ran.code, ran.out) == (2, "")
    assert f"error: {problem}" in ran.err
    assert terminal.ok("jobs", "show", id_, "--json").json == before


def test_every_command_takes_the_beginning_of_an_id(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", "{}", "--delay", "1h")
    short = id_[:13]
    assert terminal.ok("jobs", "show", short, "--json").json["id"] == id_
    assert id_ in terminal.ok("jobs", "change", short, "--priority", "1").out
    for verb in ("run", "cancel", "retry", "cancel", "delete"):
        assert id_ in terminal.ok("jobs", verb, short).out


def test_a_beginning_of_several_ids_or_of_none_is_said(terminal: Terminal) -> None:
    first, _ = terminal.enqueue(), terminal.enqueue()
    several = terminal.run("jobs", "show", first[:6])
    assert (several.code, several.err) == (
        2,
        f"error: id: 2 jobs have an id that begins with '{first[:6]}'; give more of it\n",
    )
    none = terminal.run("jobs", "show", "ffffffff")
    assert (none.code, none.err) == (1, "error: no job ffffffff…\n")
