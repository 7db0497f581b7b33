"""Schedules that the code no longer declares: named by a worker at its start, removed by `schedules prune`."""

import sys

import pytest

from tests.cli.terminal import Terminal, process

BEFORE = """
from windlass import App

app = App("sqlite:///windlass.db")


@app.schedule("0 3 * * *")
@app.task
def nightly() -> None: ...


@app.schedule("0 4 * * *")
@app.task
def weekly() -> None: ...
"""
AFTER = BEFORE.replace('@app.schedule("0 3 * * *")\n', "")


@pytest.fixture
def shop(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Two schedules of the code before, one of an operator; the code after declares one of the two."""
    for name, text in (("shop_before", BEFORE), ("shop_after", AFTER)):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (terminal.folder / f"{name}.py").write_text(text)
    # A verb that writes, with the app: it writes what the app declares, too.
    terminal.ok("schedules", "add", "by-hand", "nightly", "--every", "1h", "--app", "shop_before:app")
    return terminal


def names(terminal: Terminal) -> list[str]:
    return [each["name"] for each in terminal.ok("schedules", "list", "--json").json]


def test_prune_asks_and_removes_what_the_code_no_longer_declares(shop: Terminal) -> None:
    refused = shop.run("schedules", "prune", "--app", "shop_after:app", typed="n\n")
    assert refused.code == 1
    assert "Remove nightly from sqlite:///" in refused.out
    assert shop.run("schedules", "prune", "--app", "shop_after:app").code == 2
    assert names(shop) == ["by-hand", "nightly", "weekly"]
    assert shop.ok("schedules", "prune", "--app", "shop_after:app", "--yes").out == "nightly is removed\n"
    assert names(shop) == ["by-hand", "weekly"]
    said = shop.ok("schedules", "prune", "--app", "shop_after:app").out
    assert said.startswith("shop_after:app declares every schedule in sqlite:///")


def test_a_worker_names_them_at_its_start(shop: Terminal) -> None:
    ran = process(shop.folder, "worker", "--app", "shop_after:app", "--until-empty")
    assert ran.returncode == 0
    advice = "to remove them: windlass schedules prune --app shop_after:app"
    assert f"schedules that shop_after:app no longer declares: nightly; {advice}" in ran.stderr
    silent = process(shop.folder, "worker", "shop_before:app", "--until-empty")
    assert "no longer declares" not in silent.stderr
