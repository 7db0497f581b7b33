"""Schedules and chains by the command line, on the stores that are servers: they look the same wherever they are."""

import pytest

from tests.cli.terminal import Terminal
from tests.support.servers.redis_places import redis_place
from tests.support.stores import postgres_url
from windlass import App, chain


@pytest.fixture(params=["postgresql", "redis"])
def address(request: pytest.FixtureRequest, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store of a server, which the commands of the terminal use."""
    found = postgres_url(terminal.folder) if request.param == "postgresql" else redis_place(terminal.folder)
    monkeypatch.setenv("WINDLASS_STORE", found)
    return found


@pytest.mark.usefixtures("address")
def test_a_schedule_is_made_shown_changed_run_and_removed(terminal: Terminal) -> None:
    assert terminal.ok("schedules", "list").out.startswith("No schedules in ")
    terminal.ok("schedules", "add", "s", "t", '{"n": 1}', "--cron", "0 0 1 1 *", "--tz", "Asia/Tokyo")
    terminal.ok("schedules", "set", "s", "--catch-up", "all", "--no-overlap")
    listed = terminal.ok("schedules", "list").out
    assert 'At 00:00 on January 1 (Asia/Tokyo): t {"n":1} in default; missed runs are made up; no overlap' in listed
    job = terminal.ok("schedules", "run", "s").out.strip()
    assert terminal.ok("schedules", "run", "s").out.startswith(f"{job} (exists already")
    shown = terminal.ok("jobs", "show", job).out
    assert "schedule      s, run at once" in shown
    assert "next run" in shown
    assert "none, it is paused" in terminal.ok("schedules", "pause", "s").out
    assert terminal.ok("schedules", "list", "--json").json[0]["paused"] is True
    assert "1, 1 of them paused" in terminal.run("doctor").out
    assert "JST" in terminal.ok("schedules", "resume", "s").out
    terminal.ok("schedules", "remove", "s")
    assert terminal.run("schedules", "show", "s").code == 1


def test_a_chain_is_shown_from_any_of_its_links(terminal: Terminal, address: str) -> None:
    app = App(address)

    @app.task
    def step(number: int) -> int:
        return number

    ids = [link.id for link in chain(step.job(1), step.using(queue="other"), step).enqueue().links]
    app.close()
    shown = terminal.ok("jobs", "show", ids[1]).out
    assert "link 2 of 3" in shown
    assert f"comes after   step pending {ids[0]}" in shown
    assert f"comes before  step blocked {ids[2]}" in shown
    assert [job["id"] for job in terminal.ok("jobs", "list", "--chain", ids[2], "--json").json] == ids
    terminal.ok("jobs", "cancel", ids[0])
    assert {job["status"] for job in terminal.ok("jobs", "list", "--chain", ids[2], "--json").json} == {"cancelled"}
