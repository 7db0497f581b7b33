"""windlass queues, workers, stats and migrate."""

import asyncio
import sys

import pytest

from tests.cli.terminal import Terminal
from tests.support.seed import worker_info
from windlass import App, Status
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Meter, histogram
from windlass.store.sqlite.migrate import migrations


def test_stats_are_by_queue_and_in_all(terminal: Terminal) -> None:
    assert terminal.ok("stats").out == f"No jobs yet in sqlite:///{terminal.folder}/windlass.db.\n"
    nothing = {"seconds": 300, "queues": {}, "types": {}}
    assert terminal.ok("stats", "--json").json == {
        "queues": {},
        "totals": dict.fromkeys(Status, 0),
        "recent": nothing,
    }
    terminal.enqueue()
    terminal.enqueue("t", "{}", "--queue", "mail", "--delay", "1h")
    stats = terminal.ok("stats", "--json").json
    assert stats["queues"]["default"] == dict.fromkeys(Status, 0) | {"pending": 1}
    assert stats["queues"]["mail"] == dict.fromkeys(Status, 0) | {"scheduled": 1}
    assert stats["totals"] == dict.fromkeys(Status, 0) | {"pending": 1, "scheduled": 1}
    names = [line.split()[0] for line in terminal.ok("stats").out.splitlines()]
    assert names == ["queue", "default", "mail", "all"]


def test_stats_tell_how_fast_jobs_ran_and_how_long_they_took(terminal: Terminal) -> None:
    terminal.enqueue()
    assert terminal.ok("stats").out.splitlines()[0].split() == ["queue", "pending", "running", "completed", "dead"]

    async def measure(app: App) -> None:
        store = await app._ready()
        times = histogram([SECOND] * 9 + [100 * SECOND])
        await store.stats.record([Meter(queue="default", type="t", completed=9, dead=1, wait=times, run=times)])
        await app.aclose()

    asyncio.run(measure(App("sqlite:///windlass.db")))
    recent = terminal.ok("stats", "--json").json["recent"]
    assert recent["queues"]["default"] == recent["types"]["t"]
    found = recent["types"]["t"]
    assert (found["completed"], found["failures"]) == (9, 1)
    assert found["run"]["p50"] == pytest.approx(1, rel=1 / 16)
    assert found["wait"]["p95"] == pytest.approx(100, rel=1 / 16)
    assert found["per_second"] == pytest.approx(9 / 25, rel=0.3), "nine in the last 20 to 30 seconds"
    heading, row, blank, types, of_type = terminal.ok("stats").out.splitlines()
    assert heading.split()[-2:] == types.split()[-2:] == ["run", "p99"]
    assert row.split()[-3:] == of_type.split()[-3:] == ["1.0s", "96s", "96s"], "to a sixteenth"
    assert (blank, of_type.split()[:3]) == ("", ["t", "9", "1"])


def test_set_changes_a_queue_and_says_what_holds(terminal: Terminal) -> None:
    terminal.ok("queues", "add", "mail")
    words = ["--max-attempts", "5", "--retry-base", "10s", "--retry-cap", "1h", "--keep-dead", "30d"]
    said = terminal.ok("queues", "set", "mail", *words).out
    assert said.splitlines() == [
        "mail: 5 attempts, exponential back-off from 10s, timeout 5m, unless the task says otherwise; "
        "keep cancelled 7d, completed 7d, dead 30d",
        "Set by an operator: max-attempts, retry, retention",
    ]
    (queue,) = terminal.ok("queues", "list", "--json").json
    assert (queue["name"], queue["max_attempts"], queue["retention"]["dead"]) == ("mail", 5, 30 * 86_400)
    assert (queue["retry"]["base"], queue["retry"]["cap"]) == (10, 3600)
    terminal.ok("queues", "set", "mail", "--retry-cap", "2h")
    (queue,) = terminal.ok("queues", "list", "--json").json
    assert (queue["retry"]["base"], queue["retry"]["cap"]) == (10, 7200)


def test_set_keeps_the_change_before_and_reset_undoes_it(terminal: Terminal) -> None:
    terminal.ok("queues", "add", "mail")
    terminal.ok("queues", "set", "mail", "--max-attempts", "5", "--keep-completed", "0s", "--timeout", "none")
    again = terminal.ok("queues", "set", "mail", "--max-attempts", "6").out
    assert again.startswith("mail: 6 attempts, no timeout, unless the task says otherwise; keep cancelled 7d, com")
    assert again.endswith("completed 0s, dead 90d\nSet by an operator: max-attempts, timeout, retention\n")
    partly = terminal.ok("queues", "reset", "mail", "max-attempts", "retention").out
    assert partly.endswith("\nSet by an operator: timeout\n")
    undone = terminal.ok("queues", "reset", "mail").out
    assert undone == (
        "mail: 3 attempts, timeout 5m, unless the task says otherwise; keep cancelled 7d, completed 7d, dead 90d\n"
    )


def test_pause_and_resume(terminal: Terminal) -> None:
    terminal.ok("queues", "add", "mail")
    assert terminal.ok("queues", "pause", "mail").out == "mail is paused\n"
    assert terminal.ok("queues", "list", "--json").json[0]["paused"] is True
    assert terminal.ok("queues", "resume", "mail").out == "mail is open\n"
    assert terminal.ok("queues", "list", "--json").json[0]["paused"] is False
    assert terminal.ok("queues", "pause", "mail", "--for", "10m").out.startswith("mail is paused, resumes in 9m 5")
    row = terminal.ok("queues", "list").out.splitlines()[1]
    assert row.split()[:2] == ["mail", "paused"]
    assert "Resumes in 9m 5" in row


def test_close_and_open(terminal: Terminal) -> None:
    terminal.ok("queues", "add", "mail")
    assert terminal.ok("queues", "close", "mail").out == "mail is closed to new jobs\n"
    assert terminal.ok("queues", "list", "--json").json[0]["closed"] is True
    ran = terminal.run("enqueue", "t", "{}", "--queue", "mail")
    assert (ran.code, ran.out, ran.err) == (1, "", "error: queue 'mail' is closed to new jobs; nothing was stored\n")
    assert terminal.ok("jobs", "list").out.startswith("No jobs match")
    assert terminal.ok("queues", "pause", "mail").out == "mail is paused; closed to new jobs\n"
    assert "mail   paused, closed" in terminal.ok("queues", "list").out
    assert terminal.ok("queues", "open", "mail").out == "mail is paused\n"
    assert terminal.ok("queues", "list", "--json").json[0]["closed"] is False


def test_an_unknown_queue_is_an_error_until_it_is_added(terminal: Terminal) -> None:
    terminal.enqueue("t", "{}", "--queue", "images")
    for words in (["pause"], ["resume"], ["close"], ["open"], ["reset"], ["purge"], ["set", "--fair"]):
        ran = terminal.run("queues", words[0], "imagse", *words[1:])
        known = "There are default, images; `queues add` makes one before its first job"
        assert (ran.code, ran.err) == (1, f"error: no queue 'imagse'; did you mean 'images'? {known}\n")
    assert [each["name"] for each in terminal.ok("queues", "list", "--json").json] == ["images"]
    assert terminal.ok("queues", "add", "imagse").out == "imagse is open\n"
    assert terminal.ok("queues", "pause", "imagse").out == "imagse is paused\n"
    assert terminal.ok("queues", "add", "imagse").out == "imagse is paused\n"


def test_queues_are_listed_with_their_jobs(terminal: Terminal) -> None:
    assert terminal.ok("queues", "list").out == "No queues yet.\n"
    terminal.enqueue()
    heading, row = terminal.ok("queues", "list").out.splitlines()
    assert heading.split() == ["queue", "state", "pending", "blocked", "running", "failed", "dead", "settings"]
    assert row.split()[:7] == ["default", "open", "1", "0", "0", "0", "0"]
    assert terminal.ok("queues", "list", "--json").json[0]["jobs"]["pending"] == 1


def test_purge_asks_first_and_cancels_what_waits(terminal: Terminal) -> None:
    ids = [terminal.enqueue("t", "{}", "--queue", "mail", *delay) for delay in ([], ["--delay", "1h"])]
    other = terminal.enqueue("t", "{}")
    asked = terminal.run("queues", "purge", "mail", typed="n\n")
    assert asked.out == f"Cancel the 2 waiting jobs of mail in sqlite:///{terminal.folder}/windlass.db? [y/N]: "
    assert (asked.code, asked.err) == (1, "Aborted.\n")
    assert terminal.ok("queues", "purge", "mail", typed="y\n").out.endswith("2 cancelled\n")
    assert terminal.ok("queues", "purge", "mail", "--yes").out == "0 cancelled\n"
    jobs = {job["id"]: (job["status"], job["reason"]) for job in terminal.ok("jobs", "list", "--json").json}
    assert jobs == {**dict.fromkeys(ids, ("cancelled", "purged")), other: ("pending", None)}


def test_workers_are_listed(terminal: Terminal) -> None:
    assert terminal.ok("workers", "list").out == "No workers.\n"

    async def register(app: App) -> None:
        store = await app._ready()
        await store.workers.beat(worker_info("w1", host="here", pid=7, slots=20, processes=2, draining=True))
        await app.aclose()

    asyncio.run(register(App("sqlite:///windlass.db")))
    (worker,) = terminal.ok("workers", "list", "--json").json
    assert (worker["id"], worker["pid"], worker["slots"]) == ("w1", 7, 20)
    row = terminal.ok("workers", "list").out.splitlines()[1]
    assert "2 × 10" in row
    assert "(stopping)" in row


def test_migrate_brings_the_schema_up_to_date_once(terminal: Terminal) -> None:
    done = "".join(f"applied {step.name}\n" for step in migrations())
    assert terminal.ok("migrate", "--store", "sqlite:///new.db").out == done
    assert terminal.ok("migrate", "--store", "sqlite:///new.db").out == "The schema is up to date.\n"


def test_migrate_finds_the_store_of_an_app(terminal: Terminal) -> None:
    text = 'from windlass import App\napp = App("sqlite:///of_the_app.db")\n'
    (terminal.folder / "app_to_migrate.py").write_text(text)
    terminal.ok("migrate", "--app", "app_to_migrate:app")
    assert (terminal.folder / "of_the_app.db").exists()
    sys.modules.pop("app_to_migrate")


def test_the_version_is_shown(terminal: Terminal) -> None:
    assert terminal.ok("--version").out.startswith("windlass 0.")
