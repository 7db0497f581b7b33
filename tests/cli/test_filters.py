"""windlass jobs cancel, retry and delete by filter: a count, a question, and --yes."""

import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_jobs import kill


def status_of(terminal: Terminal, id_: str) -> str:
    return str(terminal.ok("jobs", "show", id_, "--json").json["status"])


def test_a_filter_is_counted_and_asked_about(terminal: Terminal) -> None:
    mail = [terminal.enqueue("mail") for _ in range(3)]
    other = terminal.enqueue("other")
    refused = terminal.run("jobs", "cancel", "--type", "mail", typed="n\n")
    assert refused.code == 1
    assert "Cancel 3 blocked, failed, pending, running or scheduled jobs in sqlite:///" in refused.out
    assert status_of(terminal, mail[0]) == "pending"
    done = terminal.ok("jobs", "cancel", "--type", "mail", "--reason", "not needed", typed="y\n")
    assert "3 cancelled, or asked to stop" in done.out
    assert terminal.ok("jobs", "show", mail[2], "--json").json["reason"] == "not needed"
    assert status_of(terminal, other) == "pending"


@pytest.mark.parametrize("verb", ["cancel", "retry", "delete"])
def test_without_a_terminal_only_yes_does_it(terminal: Terminal, verb: str) -> None:
    terminal.enqueue("mail")
    kill(terminal)
    before = terminal.ok("jobs", "list", "--json").json
    ran = terminal.run("jobs", verb, "--all")
    assert (ran.code, ran.out) == (2, "")
    assert f"error: --yes: is needed without a terminal to ask on: this would {verb} " in ran.err
    assert terminal.ok("jobs", "list", "--json").json == before
    assert terminal.ok("jobs", verb, "--all", "--yes").out.startswith("1 ")


def test_nothing_that_matches_is_no_question(terminal: Terminal) -> None:
    terminal.enqueue("mail")
    found = terminal.ok("jobs", "retry", "--type", "mail").out
    assert found == f"No dead or failed jobs match in sqlite:///{terminal.folder}/windlass.db.\n"


def test_retry_by_filter_leaves_what_ended_well_or_was_cancelled(terminal: Terminal) -> None:
    cancelled = terminal.enqueue("mail")
    terminal.ok("jobs", "cancel", cancelled)
    (dead,) = kill(terminal)
    assert terminal.ok("jobs", "retry", "--all", "--yes").out == "1 retried\n"
    assert (status_of(terminal, dead), status_of(terminal, cancelled)) == ("pending", "cancelled")
    assert terminal.ok("jobs", "retry", "--status", "cancelled", "--yes").out == "1 retried\n"


FILTERS = {"--tenant": "acme", "--tag": "big", "--queue": "mail", "--type": "welcome"}


@pytest.mark.parametrize("option", FILTERS)
def test_every_filter_chooses(terminal: Terminal, option: str) -> None:
    words = ["--tenant", "acme", "--tag", "big", "--queue", "mail"]
    ids = [terminal.enqueue("welcome", "{}", *words), terminal.enqueue("t")]
    assert terminal.ok("jobs", "cancel", option, FILTERS[option], "--yes").out.startswith("1 ")
    assert [status_of(terminal, id_) for id_ in ids] == ["cancelled", "pending"]
    assert terminal.ok("jobs", "delete", option, FILTERS[option], "--yes").out == "1 deleted\n"


def test_several_ids_are_done_one_after_the_other(terminal: Terminal) -> None:
    ids = [terminal.enqueue() for _ in range(2)]
    assert terminal.ok("jobs", "cancel", *ids).out == "".join(f"{id_} is cancelled\n" for id_ in ids)


WRONG = {
    "neither": ([], "name ids, or filters such as --type or --status; --all is for every job"),
    "both": (["ID", "--type", "mail"], "name ids, or filters"),
    "a status that the verb is not for": (["--status", "completed"], "--status: 'completed' is not one of"),
    "no status": (["--status", "done"], "--status: 'done' is not one of"),
    "a bad type": (["--type", "a b", "--yes"], "type: 'a b' is not"),
}


@pytest.mark.parametrize("row", WRONG)
def test_a_wrong_choice_changes_nothing(terminal: Terminal, row: str) -> None:
    words, problem = WRONG[row]
    id_ = terminal.enqueue("mail")
    ran = terminal.run("jobs", "cancel", *(id_ if word == "ID" else word for word in words))
    assert ran.code == 2
    assert problem in " ".join(ran.err.replace("│", " ").split())
    assert status_of(terminal, id_) == "pending"


def test_jobs_of_a_tenant_and_of_a_schedule_are_listed(terminal: Terminal) -> None:
    acme = terminal.enqueue("t", "{}", "--tenant", "acme")
    terminal.ok("schedules", "add", "nightly", "report", "--cron", "0 3 * * *")
    tick = terminal.ok("schedules", "run", "nightly").out.strip()
    assert [job["id"] for job in terminal.ok("jobs", "list", "--tenant", "acme", "--json").json] == [acme]
    assert [job["id"] for job in terminal.ok("jobs", "list", "--schedule", "nightly", "--json").json] == [tick]
