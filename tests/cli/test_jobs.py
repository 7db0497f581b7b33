"""windlass enqueue, jobs and dead."""

from uuid import UUID, uuid4

import msgspec
import pytest

from tests.cli.terminal import Terminal
from tests.client.labour import Labour
from windlass import App, Dead, Job

FIELDS = {field.name for field in msgspec.structs.fields(Job)}


def test_enqueue_prints_the_id_of_the_job(terminal: Terminal) -> None:
    id_ = terminal.ok("enqueue", "mail.welcome", '{"user_id": 42}', "--queue", "mail", "--delay", "60s").out.strip()
    job = terminal.ok("jobs", "show", str(UUID(id_)), "--json").json
    assert (job["type"], job["payload"], job["queue"], job["status"]) == (
        "mail.welcome",
        {"user_id": 42},
        "mail",
        "scheduled",
    )


def test_enqueue_takes_every_option(terminal: Terminal) -> None:
    options = ["--priority", "-5", "--idempotency-key", "k", "--max-attempts", "9"]
    job = terminal.ok("jobs", "show", terminal.enqueue("t", "{}", *options), "--json").json
    assert (job["priority"], job["idempotency_key"], job["max_attempts"]) == (-5, "k", 9)


def test_enqueue_takes_a_moment_and_a_timeout(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", "{}", "--run-at", "2090-01-31T09:00+01:00", "--timeout", "5m")
    job = terminal.ok("jobs", "show", id_, "--json").json
    assert (job["run_at"], job["timeout"], job["status"]) == ("2090-01-31T08:00:00Z", 300, "scheduled")
    endless = terminal.enqueue("t", "{}", "--timeout", "none")
    assert terminal.ok("jobs", "show", endless, "--json").json["timeout"] is None


def test_enqueue_says_that_a_job_stood_already(terminal: Terminal) -> None:
    first = terminal.ok("enqueue", "t", "--idempotency-key", "k", "--json").json
    assert first == {"id": first["id"], "existing": False}
    assert terminal.ok("enqueue", "t", "--idempotency-key", "k").out == f"{first['id']} (exists already)\n"


def test_list_gives_records_with_the_field_names_of_a_job(terminal: Terminal) -> None:
    assert terminal.ok("jobs", "list", "--json").json == []
    ids = [terminal.enqueue() for _ in range(2)]
    records = terminal.ok("jobs", "list", "--json").json
    assert [record["id"] for record in records] == ids[::-1]
    assert all(set(record) == FIELDS for record in records)


def test_show_gives_one_record(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", '{"a": [1, null, "x"]}')
    record = terminal.ok("jobs", "show", id_, "--json").json
    assert set(record) == FIELDS
    assert record["payload"] == {"a": [1, None, "x"]}


def test_a_table_is_for_people(terminal: Terminal) -> None:
    assert terminal.ok("jobs", "list").out == f"No jobs match in sqlite:///{terminal.folder}/windlass.db.\n"
    id_ = terminal.enqueue("mail.welcome")
    heading, row = terminal.ok("jobs", "list").out.splitlines()
    assert heading.split() == ["id", "status", "type", "queue", "attempt", "created", "what"]
    assert row.split()[:5] == [id_, "pending", "mail.welcome", "default", "0"]


def test_list_goes_on_after_a_cursor(terminal: Terminal) -> None:
    ids = [terminal.enqueue() for _ in range(5)][::-1]
    first = terminal.ok("jobs", "list", "--limit", "2")
    assert first.out.rstrip().endswith(f"More: --cursor {ids[1]}")
    rest = terminal.ok("jobs", "list", "--cursor", ids[1], "--json").json
    assert [record["id"] for record in rest] == ids[2:]
    assert "More" not in terminal.ok("jobs", "list", "--cursor", ids[1]).out


def test_list_filters(terminal: Terminal) -> None:
    mail = terminal.enqueue("mail", "{}", "--queue", "q")
    terminal.enqueue("other", "{}", "--queue", "q")
    terminal.enqueue("mail")
    words = ["--type", "mail", "--queue", "q", "--status", "pending", "--status", "dead"]
    assert [job["id"] for job in terminal.ok("jobs", "list", *words, "--json").json] == [mail]


def test_cancel_retry_and_delete(terminal: Terminal) -> None:
    id_ = terminal.enqueue()
    assert terminal.ok("jobs", "cancel", id_, "--reason", "not needed").out == f"{id_} is cancelled\n"
    assert terminal.ok("jobs", "show", id_, "--json").json["reason"] == "not needed"
    assert terminal.ok("jobs", "retry", id_).out == f"{id_} is pending; the next attempt is number 1\n"
    terminal.ok("jobs", "cancel", id_)
    assert terminal.ok("jobs", "delete", id_).out == f"{id_} is deleted\n"
    assert terminal.run("jobs", "show", id_).code == 1


def kill(terminal: Terminal, jobs: int = 1) -> list[str]:
    """Dead jobs, newest first."""

    def work(app: App) -> None:
        labour = Labour(app)
        for _ in range(jobs):
            labour.fail(Dead("hopeless"))

    ids = [terminal.enqueue() for _ in range(jobs)]
    terminal.with_app(work)
    return ids[::-1]


def test_dead_list_says_why(terminal: Terminal) -> None:
    assert terminal.ok("dead", "list").out == f"No dead jobs in sqlite:///{terminal.folder}/windlass.db.\n"
    (id_,) = kill(terminal)
    assert [job["id"] for job in terminal.ok("dead", "list", "--json").json] == [id_]
    reported = terminal.ok("dead", "list").out
    assert reported.count("hopeless") == 1
    assert reported.endswith("\n\nwindlass jobs show ID has the traceback\n")


def test_dead_retry_revives_those_that_are_named(terminal: Terminal) -> None:
    ids = kill(terminal, 3)
    assert terminal.ok("dead", "retry", *ids[:2]).out == "2 revived\n"
    assert [job["id"] for job in terminal.ok("dead", "list", "--json").json] == ids[2:]


def test_dead_retry_all_revives_all_that_match(terminal: Terminal) -> None:
    kill(terminal, 3)
    assert terminal.ok("dead", "retry", "--all", "--type", "another").out == "0 revived\n"
    assert terminal.ok("dead", "retry", "--all").out == "3 revived\n"
    assert terminal.ok("stats", "--json").json["totals"]["pending"] == 3


@pytest.mark.parametrize("words", [[], [str(uuid4()), "--all"]])
def test_dead_retry_wants_names_or_all_of_them_and_not_both(terminal: Terminal, words: list[str]) -> None:
    ran = terminal.run("dead", "retry", *words)
    assert ran.code == 2
    assert "name ids, or add --all" in ran.err


def test_dead_purge_asks(terminal: Terminal) -> None:
    ids = kill(terminal, 2)
    refused = terminal.run("dead", "purge", typed="n\n")
    assert refused.code == 1
    assert len(terminal.ok("dead", "list", "--json").json) == len(ids)
    assert "2 dropped" in terminal.ok("dead", "purge", typed="y\n").out
    assert terminal.ok("dead", "list", "--json").json == []


def test_dead_purge_does_not_ask_twice_nor_touch_the_living(terminal: Terminal) -> None:
    kill(terminal)
    living = terminal.enqueue()
    assert terminal.ok("dead", "purge", "--yes").out == "1 dropped\n"
    assert [job["id"] for job in terminal.ok("jobs", "list", "--json").json] == [living]
