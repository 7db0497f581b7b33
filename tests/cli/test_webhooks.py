"""windlass webhooks."""

import pytest

from tests.cli.terminal import Ran, Terminal
from windlass import App

URL = "https://example.com/hook"


def ends(terminal: Terminal, code: int, *words: str) -> Ran:
    ran = terminal.run(*words)
    assert ran.code == code, ran
    return ran


def test_a_webhook_is_added_listed_shown_paused_resumed_and_removed(terminal: Terminal) -> None:
    added = terminal.ok("webhooks", "add", "ops", URL, "--event", "job.dead", "--queue", "mail", "--type", "img.*")
    assert added.out.startswith("whsec_")
    assert "shown only now" in added.err
    listed = terminal.ok("webhooks", "list")
    assert "job.dead (queue mail, type img.*)" in listed.out
    terminal.ok("webhooks", "pause", "ops")
    (found,) = terminal.ok("webhooks", "list", "--json").json
    assert (found["paused"], found["events"], found["url"]) == (True, ["job.dead"], URL)
    terminal.ok("webhooks", "resume", "ops")
    rotated = terminal.ok("webhooks", "rotate", "ops", "--overlap", "1h", "--json").json
    assert rotated["secret"] != added.out.strip()
    assert rotated["webhook"]["old_secret_until"] is not None
    shown = terminal.ok("webhooks", "show", "ops")
    assert "Nothing was delivered yet." in shown.out
    assert "whsec_" not in shown.out + listed.out
    assert "--yes" in ends(terminal, 2, "webhooks", "remove", "ops").err
    terminal.ok("webhooks", "remove", "ops", "--yes")
    assert "no webhook 'ops'" in ends(terminal, 1, "webhooks", "show", "ops").err


def test_a_test_without_a_worker_says_so_and_is_listed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.cli.webhooks.TEST_SECONDS", 0.1)
    terminal.ok("webhooks", "add", "ops", URL)
    assert "no worker has delivered" in ends(terminal, 1, "webhooks", "test", "ops").err
    app = App(f"sqlite:///{terminal.folder}/windlass.db")
    (delivery,) = app.webhooks.deliveries("ops")
    app.jobs.cancel(delivery.id, reason="unwanted")
    app.close()
    (record,) = terminal.ok("webhooks", "show", "ops", "--json").json["deliveries"]
    assert (record["event"], record["status"], record["answer"]) == ("webhook.test", "cancelled", "unwanted")


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "https://10.1.2.3/", "nonsense"])
def test_an_address_that_may_not_be_reached_is_a_wrong_call(terminal: Terminal, url: str) -> None:
    assert "url" in ends(terminal, 2, "webhooks", "add", "ops", url).err
    assert terminal.ok("webhooks", "list", "--json").json == []


def test_networks_of_the_settings_file_are_allowed(terminal: Terminal) -> None:
    (terminal.folder / "windlass.toml").write_text('webhook_networks = "10.1.0.0/16"\n')
    terminal.ok("webhooks", "add", "ops", "http://10.1.2.3/", "--store", "sqlite:///windlass.db")
    (terminal.folder / "windlass.toml").write_text('webhook_networks = "10.1.0.0/99"\n')
    assert (
        "webhook_networks" in ends(terminal, 2, "webhooks", "add", "two", URL, "--store", "sqlite:///windlass.db").err
    )
