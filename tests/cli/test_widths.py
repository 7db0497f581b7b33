"""What is printed fits the columns there are, and no line ends in blanks."""

import asyncio

import pytest

from tests.cli.terminal import Terminal
from tests.support.seed import claim_one, failed, open_lease, settle, worker_info
from windlass import App
from windlass.store.contract import Store

RUNNER = "0a1b2c3d4e"
MESSAGE = "the customer has no address that we could send this letter to, nor any other"


async def _busy(store: Store) -> None:
    """A worker, a job that failed with a long message, and one that runs."""
    await store.workers.beat(worker_info("5d41402abc", host="web-1.example.net", pid=41_712, queues=("default",)))
    await open_lease(store, RUNNER, "5d41402abc")
    await settle(store, failed(await claim_one(store, RUNNER), MESSAGE))
    await claim_one(store, RUNNER)


@pytest.fixture
def ids(terminal: Terminal) -> list[str]:
    """Of the failed one and the running one."""
    made = [terminal.enqueue(), terminal.enqueue()]

    async def work() -> None:
        app = App("sqlite:///windlass.db")
        await _busy(await app._ready())
        await app.aclose()

    asyncio.run(work())
    return made


COMMANDS = [
    *("top --once", "doctor", "workers list", "jobs list", "jobs show {}", "stats", "stats --since 6h", "queues list")
]


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_goes_into_a_pipe_is_as_wide_as_columns_says_and_ends_in_no_blanks(
    terminal: Terminal, ids: list[str], monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = terminal.run(*command.format(ids[0]).split()).out.splitlines()
    assert lines
    assert [line for line in lines if len(line) > width] == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("nonsense", ["", "0", "wide", "-3"])
def test_columns_that_are_no_width_are_not_heeded(
    terminal: Terminal, ids: list[str], monkeypatch: pytest.MonkeyPatch, nonsense: str
) -> None:
    plain = terminal.ok("workers", "list").out
    monkeypatch.setenv("COLUMNS", nonsense)
    assert terminal.ok("workers", "list").out.splitlines()[0] == plain.splitlines()[0]


def test_a_worker_is_one_line_at_80_columns_and_its_numbers_stand_under_each_other(
    terminal: Terminal, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    heading, row = terminal.ok("workers", "list").out.splitlines()
    end = heading.index("running") + len("running")
    assert row[:end].endswith(" 1")
    assert row.endswith("default")


def test_a_long_error_goes_on_under_itself(
    terminal: Terminal, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = terminal.ok("jobs", "show", ids[0]).out.splitlines()
    first = lines.index("Attempts") + 1
    assert lines[first].startswith("  #1 failed after ") or lines[first].startswith("  #1 failed on ")
    assert lines[first + 1].startswith("     ")
    assert MESSAGE in " ".join(" ".join(lines[first:]).split())


def test_a_running_job_that_is_to_stop_is_said_to_be_asked(terminal: Terminal, ids: list[str]) -> None:
    said = terminal.ok("jobs", "cancel", ids[1], "--reason", "not needed").out
    assert said == f"{ids[1]} was asked to stop; a def handler must check ctx.cancelled, so it may still complete\n"
    (row,) = [line for line in terminal.ok("jobs", "list").out.splitlines() if line.startswith(ids[1])]
    assert row.endswith("asked to stop: not needed")
    shown = terminal.ok("jobs", "show", ids[1]).out
    assert "  reason        asked to stop: not needed\n" in shown


def test_attempts_before_a_retry_are_distinguished_from_those_that_count(terminal: Terminal, ids: list[str]) -> None:
    assert "1 made, 3 allowed; 1 failed" in terminal.ok("jobs", "show", ids[0]).out
    terminal.ok("jobs", "retry", ids[0])
    assert "1 made; 0 of 3 allowed used since the retry\n" in terminal.ok("jobs", "show", ids[0]).out


def test_the_times_of_a_schedule_with_a_long_name_are_not_cut_off_and_what_is_long_goes_on_under_itself(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, text = "a" * 50, '{"text": "' + "lorem ipsum " * 20 + '"}'
    times = ("--cron", "0 9 1 1 *", "--tz", "America/Argentina/Buenos_Aires")
    terminal.ok("schedules", "add", name, "t", text, *times)
    monkeypatch.setenv("COLUMNS", "80")
    heading, below, first, second, *_ = terminal.ok("schedules", "list").out.splitlines()
    assert (heading, first) == ("schedule", name)
    assert below.split() == ["next", "run", "here", "last", "tick"]
    assert " 09:00 -03  " in second
    assert second.endswith("  none yet")
    _, when, more, *rest = terminal.ok("schedules", "show", name).out.splitlines()
    assert when.startswith("  when        At 09:00 on January 1")
    assert more.startswith(" " * 14)
    assert [line for line in (when, more, *rest) if len(line) > 80] == []
