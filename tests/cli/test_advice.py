"""Advice names the app or the store that the command was given."""

import sys

import pytest

from tests.cli.terminal import Terminal
from windlass.cli.output.advice import Advice

SHOP = "from windlass import App\n\napp = App('sqlite:///windlass.db')\n"

ADVICE = {
    "to see it: windlass jobs why 7": "to see it: windlass jobs why OPTIONS 7",
    "windlass dead list; then windlass dead retry, or purge": (
        "windlass dead list OPTIONS; then windlass dead retry OPTIONS, or purge"
    ),
    "if that does not pass: windlass doctor": "if that does not pass: windlass doctor OPTIONS",
    "start a worker, or wait": "start a worker, or wait",
}


@pytest.mark.parametrize("text", ADVICE)
@pytest.mark.parametrize(
    ("store", "app", "options"),
    [
        (None, "shop:app", "--app shop:app"),
        ("sqlite:///a b.db", None, "--store 'sqlite:///a b.db'"),
        ("redis://host/1", "shop:app", "--store redis://host/1 --app shop:app"),
    ],
)
def test_commands_get_the_given_options(text: str, store: str | None, app: str | None, options: str) -> None:
    assert Advice(store, app)(text) == ADVICE[text].replace("OPTIONS", options)


def test_a_worker_is_started_with_the_given_app(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Advice(None, "shop:app")("windlass worker module:app --queues a") == "windlass worker shop:app --queues a"
    assert Advice(None, None)("windlass worker module:app; windlass doctor") == (
        "windlass worker module:app; windlass doctor"
    )
    assert Advice("redis://h/1", "shop:app")("windlass coordinator") == "windlass coordinator --store redis://h/1"
    monkeypatch.setenv("WINDLASS_APP", "shop:app")
    assert Advice(None, "shop:app")("windlass doctor, worker module:app") == "windlass doctor, worker shop:app"


def test_a_password_is_not_repeated() -> None:
    assert Advice("postgresql://me:hunter2@db/jobs", None)("windlass doctor") == "windlass doctor"


def test_why_and_doctor_and_show_name_the_app(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "advised_shop", raising=False)
    (terminal.folder / "advised_shop.py").write_text(SHOP)
    id_ = terminal.enqueue()
    app = ["--app", "advised_shop:app"]
    assert "-> windlass worker advised_shop:app --queues default" in terminal.ok("jobs", "why", id_, *app).out
    assert "-> windlass worker advised_shop:app --queues default" in terminal.ok("jobs", "show", id_, *app).out
    assert "start one: windlass worker advised_shop:app" in terminal.run("doctor", *app).out
