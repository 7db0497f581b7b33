"""windlass schedules: what users see, what they may say, and how mistakes end."""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import apsw
import pytest

from tests.cli.terminal import Terminal

APP = """
from windlass import App

app = App("sqlite:///windlass.db")

@app.schedule("0 9 * * 1-5", tz="Europe/Berlin")
@app.task
def report() -> None: ...

@app.task
def clean(days: int) -> None: ...
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine is in New York."""
    with monkeypatch.context() as moved:
        moved.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def shop(terminal: Terminal) -> Iterator[tuple[str, str]]:
    """An app with a schedule, and how commands are told of it."""
    (terminal.folder / "shop_of_schedules.py").write_text(APP)
    yield "--app", "shop_of_schedules:app"
    sys.modules.pop("shop_of_schedules").app.close()


def test_without_any_there_is_a_sentence(terminal: Terminal) -> None:
    reported = terminal.ok("schedules", "list").out
    assert reported.startswith(
        f"No schedules in sqlite:///{terminal.folder}/windlass.db. Declare one in code, @app.schedule("
    )
    assert reported.endswith("or make one now: windlass schedules add NAME TYPE --cron '0 9 * * *'\n")


@pytest.mark.usefixtures("here")
def test_the_list_has_the_next_run_in_words_in_its_zone_and_here(terminal: Terminal) -> None:
    said = terminal.ok("schedules", "add", "new-year", "t", "--cron", "30 0 1 1 *", "--tz", "Asia/Tokyo")
    year = datetime.now(UTC).year + 1
    assert said.out.splitlines()[0] == (
        "new-year: At 00:30 on January 1 (Asia/Tokyo): t in default; of missed runs the last is made up"
    )
    listed = terminal.ok("schedules", "list").out
    assert f"{year}-01-01 00:30 JST" in listed
    assert f"{year - 1}-12-31 10:30 EST" in listed
    assert "At 00:30 on January 1 (Asia/Tokyo): t in default" in listed
    shown = terminal.ok("schedules", "show", "new-year").out
    assert [f"{year + n}-01-01 00:30 JST, here" in shown for n in range(6)] == [True] * 5 + [False]


def test_what_the_code_says_and_what_an_operator_said_are_kept_side_by_side(
    terminal: Terminal, shop: tuple[str, str]
) -> None:
    terminal.ok("schedules", "set", "report", "--every", "2h", "--no-overlap", *shop)
    listed = terminal.ok("schedules", "list").out
    assert "Every 2h: report in default; of missed runs the last is made up; no overlap" in listed
    reported = "Set by an operator: every (the code says at 09:00 on Monday through Friday (Europe/Berlin)), overlap"
    assert reported in listed
    found = terminal.ok("schedules", "list", "--json").json[0]
    assert (found["every"], found["cron"], found["overlap"]) == (7200, None, False)
    assert (found["declared"]["cron"], found["changed"]["every"]) == ("0 9 * * 1-5", 7200)
    assert "Set by" not in terminal.ok("schedules", "reset", "report").out
    terminal.ok("schedules", "set", "report", "--catch-up", "none")
    assert "Set by" not in terminal.ok("schedules", "reset", "report", "catch-up").out
    removed = terminal.ok("schedules", "remove", "report")
    assert removed.err.startswith("note: the code declared it; while it does, it comes back")


def test_with_the_app_at_hand_arguments_are_checked(terminal: Terminal, shop: tuple[str, str]) -> None:
    wrong = terminal.run("schedules", "add", "c", "clean", '{"days": "x"}', "--every", "1d", *shop)
    assert (wrong.code, wrong.err.startswith("error: ")) == (2, True)
    terminal.ok("schedules", "add", "c", "clean", '{"days": 3}', "--every", "1d", *shop)
    terminal.ok("schedules", "set", "c", "--payload", '{"days": 4}', *shop)
    assert terminal.run("schedules", "set", "c", "--payload", '{"weeks": 4}', *shop).code == 2
    assert terminal.ok("schedules", "show", "c", "--json").json["job"]["payload"] == {"days": 4}


def test_it_is_paused_resumed_run_and_removed(terminal: Terminal) -> None:
    terminal.ok("schedules", "add", "s", "t", '{"n": 1}', "--every", "5m", "--no-overlap", "--queue", "mail")
    assert terminal.ok("schedules", "pause", "s").out.endswith("Next run: none, it is paused\n")
    assert "paused" in terminal.ok("schedules", "list").out
    id_ = terminal.ok("schedules", "run", "s").out.strip()
    again = terminal.ok("schedules", "run", "s").out
    assert again == f"{id_} (exists already: its last job has not ended, and they may not overlap)\n"
    assert "schedule      s, run at once" in terminal.ok("jobs", "show", id_).out
    why = terminal.ok("jobs", "why", id_).out
    assert "Schedule s enqueued it at once, by hand; it has no next run." in why
    assert "paused" not in terminal.ok("schedules", "resume", "s").out
    assert terminal.ok("schedules", "remove", "s").out == "s is removed\n"
    assert terminal.ok("jobs", "show", id_).code == 0


def test_one_that_was_edited_by_hand_is_shown_as_broken(terminal: Terminal) -> None:
    terminal.ok("schedules", "add", "s", "t", "--every", "5m")
    with apsw.Connection("windlass.db") as connection:
        connection.execute("UPDATE windlass_schedules SET changed = 'rubbish'")
    reported = "broken: schedule: needs its times"
    assert reported in terminal.ok("schedules", "list").out
    assert reported in terminal.ok("schedules", "show", "s").out
    assert terminal.ok("schedules", "list", "--json").json[0]["problem"].startswith("schedule: needs its times")


def test_one_whose_zone_is_not_known_here_is_shown_as_broken(terminal: Terminal) -> None:
    terminal.ok("schedules", "add", "s", "t", "--cron", "@daily", "--tz", "Europe/Berlin")
    with apsw.Connection("windlass.db") as connection:
        connection.execute("UPDATE windlass_schedules SET changed = replace(changed, 'Berlin', 'Nowhere')")
    assert "broken: 'No time zone found with key Europe/Nowhere'" in terminal.ok("schedules", "list").out
    assert "unknown: the schedule is broken" in terminal.ok("schedules", "show", "s").out
    assert "Nowhere" in terminal.ok("schedules", "list", "--json").json[0]["problem"]
    assert "At 00:00 every day (UTC)" in terminal.ok("schedules", "set", "s", "--tz", "UTC").out


MISTAKES = [
    (("add", "s", "t"), "add: needs its times: --cron '0 9 * * 1-5', or --every 5m"),
    (
        ("add", "s", "t", "--cron", "0 0 31 2 *"),
        "cron: '0 0 31 2 *' never matches: there is no such day (position 5)",
    ),
    (("add", "s", "t", "--cron", "@daily", "--tz", "Mars"), "tz: 'Mars' is not a time zone that is known here"),
    (("add", "s", "t", "--every", "0.5"), "every: must be at least 1s, not '0.5'"),
    (("add", "s", "t", "[]", "--every", "5m"), "payload: must be a JSON object, not list"),
    (("add", "..", "t", "--every", "5m"), "schedule: '..' is not 1 to 128 of the characters"),
    (("set", "there"), "set: nothing to change; there are job, cron, every, tz, catch_up, overlap, jitter"),
    (("add", "there", "t", "--every", "5m"), "name: there is a schedule 'there' already; change it with set"),
    (("reset", "there"), "reset: no code declares 'there'"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES])
def test_a_mistake_ends_in_one_line_and_nothing_is_stored(
    terminal: Terminal, words: tuple[str, ...], message: str
) -> None:
    terminal.ok("schedules", "add", "there", "t", "--every", "1h")
    before = terminal.ok("schedules", "list", "--json").json
    ran = terminal.run("schedules", *words)
    assert (ran.code, ran.err.startswith(f"error: {message}")) == (2, True), ran.err
    assert len(ran.err.splitlines()) == (3 if "position" in message else 1)
    assert terminal.ok("schedules", "list", "--json").json == before


@pytest.mark.parametrize(
    ("cron", "mark"),
    [
        ("30 7 32 * *", "     ^^"),
        ("0 0 31 2 *", "    ^^^^"),
        ("0\t7 1,2,MOX * *", "        ^^^"),
        ("0 0 1 1 5#9", "        ^^^"),
    ],
)
def test_under_an_expression_the_place_is_marked_that_is_wrong(terminal: Terminal, cron: str, mark: str) -> None:
    ran = terminal.run("schedules", "add", "s", "t", "--cron", cron)
    first, shown, marks = ran.err.splitlines()
    assert (ran.code, first.startswith("error: cron: ")) == (2, True)
    assert shown == f"       {cron}".replace("\t", " ")
    assert marks == f"       {mark}"


def test_a_schedule_whose_time_is_over_is_shown_as_overdue_with_its_last_job(terminal: Terminal) -> None:
    terminal.ok("schedules", "add", "s", "t", "--every", "5m")
    job = terminal.ok("schedules", "run", "s").out.strip()
    with apsw.Connection("windlass.db") as connection:
        connection.execute("UPDATE windlass_schedules SET next_at = next_at - 400000000, last_job = ?", (job,))
    assert "; overdue by 1m" in terminal.ok("schedules", "list").out
    assert f"last job    {job} pending" in terminal.ok("schedules", "show", "s").out
    terminal.ok("jobs", "cancel", job)
    terminal.ok("jobs", "delete", job)
    assert f"last job    {job}, which is not kept any more" in terminal.ok("schedules", "show", "s").out
    assert "overdue" not in terminal.ok("schedules", "pause", "s").out


def test_a_job_tells_when_its_schedule_comes_next(terminal: Terminal) -> None:
    terminal.ok("schedules", "add", "s", "t", "--cron", "0 0 1 1 *")
    job = terminal.ok("schedules", "run", "s").out.strip()
    year = datetime.now(UTC).year + 1
    assert f"next run      {year}-01-01 00:00:00 UTC (in " in terminal.ok("jobs", "show", job).out
    terminal.ok("schedules", "pause", "s")
    assert "next run      none while it is paused" in terminal.ok("jobs", "show", job).out
    terminal.ok("schedules", "remove", "s")
    assert "next run      none: the schedule was removed" in terminal.ok("jobs", "show", job).out


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "run", "remove"])
def test_of_one_that_is_not_there_it_is_said(terminal: Terminal, verb: str) -> None:
    ran = terminal.run("schedules", verb, "nobody")
    assert (ran.code, ran.err) == (1, "error: no schedule 'nobody'\n")


def test_a_list_writes_nothing_of_what_the_app_declares_and_names_it(
    terminal: Terminal, shop: tuple[str, str]
) -> None:
    terminal.ok("queues", "add", "images")
    for command in (["schedules", "list"], ["queues", "list"], ["jobs", "list"], ["stats"], ["workers", "list"]):
        listed = terminal.ok(*command, *shop)
        if command[0] == "schedules":
            assert "note: shop_of_schedules:app declares report, not in the store yet" in listed.err
    assert terminal.ok("schedules", "list", "--json").out.strip() == "[]"
    terminal.ok("schedules", "pause", "report", *shop)
    assert terminal.ok("schedules", "list", *shop).err == ""
