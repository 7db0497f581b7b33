"""Each command once on a PostgreSQL store: they look the same wherever the jobs are."""

import pytest

from tests.cli.terminal import Terminal
from tests.support.stores import postgres_url


@pytest.fixture
def remote(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal whose store is a database."""
    monkeypatch.setenv("WINDLASS_STORE", postgres_url(terminal.folder))
    return terminal


def test_jobs_are_enqueued_listed_shown_changed_and_deleted(remote: Terminal) -> None:
    first, second = remote.enqueue("mail.send", '{"to": 1}'), remote.enqueue("mail.send", "{}", "--delay", "1h")
    assert [job["id"] for job in remote.ok("jobs", "list", "--json").json] == [second, first]
    assert "mail.send" in remote.ok("jobs", "list").out
    assert '"to": 1' in remote.ok("jobs", "show", first).out
    remote.ok("jobs", "run", second)
    remote.ok("jobs", "change", second, "--priority", "3")
    remote.ok("jobs", "cancel", second)
    remote.ok("jobs", "retry", second)
    assert {job["status"] for job in remote.ok("jobs", "list", "--json").json} == {"pending"}
    remote.ok("jobs", "cancel", first)
    remote.ok("jobs", "delete", first)
    assert [job["id"] for job in remote.ok("jobs", "list", "--json").json] == [second]


def test_queues_are_listed_paused_and_resumed(remote: Terminal) -> None:
    remote.enqueue("t", "{}", "--queue", "mail")
    remote.ok("queues", "pause", "mail")
    assert "paused" in remote.ok("queues", "list").out
    remote.ok("queues", "resume", "mail")
    assert "paused" not in remote.ok("queues", "list", "--json").json[0].get("state", "")


def test_the_views_say_where_they_look_and_what_is_there(remote: Terminal) -> None:
    assert remote.ok("dead", "list").out.startswith("No dead jobs in postgresql://")
    assert remote.ok("stats").out.startswith("No jobs yet in postgresql://")
    remote.enqueue()
    assert "default" in remote.ok("stats").out
    assert "No workers." in remote.ok("workers", "list").out
    assert "windlass top" in remote.ok("top", "--once").out
    assert remote.ok("migrate").out == "The schema is up to date.\n"
    ran = remote.run("doctor", "--json")
    assert {each["check"] for each in ran.json["findings"]} >= {"durability", "vacuum", "retention"}
