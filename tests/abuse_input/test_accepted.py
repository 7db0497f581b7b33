"""What looks odd but is right is taken, through the library and on the command line, and comes back unchanged."""

import json
from typing import Any

import pytest

from tests.cli.conftest import terminal
from tests.cli.terminal import Terminal
from windlass import App

__all__ = ["terminal"]

FRAME = len('{"thing":""}')
VALUES: dict[str, Any] = {
    "1 NUL in value and key": {"a\x00b": "c\x00"},
    "6 2^53 + 1": 2**53 + 1,
    "6 the largest integer": 2**63 - 1,
    "6 the smallest integer": -(2**63),
    "7 minus nought": -0.0,
    "7 1.0 and 1": [1.0, 1],
    "9 the order of keys": {"b": 1, "a": 2, "aa": 3, "A": 4},
    "10 depth 64": json.loads("[" * 64 + "]" * 64),
    "15 64 KiB exactly": "x" * (65_536 - FRAME),
    "18 null": None,
    "27 a script": "<script>alert(1)</script>",
    "text of many kinds": "äöü 🧵 \u202e \x1b[31m \\ \" ' \n\t \ufeff",
}


@pytest.mark.parametrize("row", VALUES)
def test_a_value_comes_back_as_it_was_whichever_way_it_came(
    terminal: Terminal, row: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_STORE", address)
    value, app = VALUES[row], App(address)

    @app.task(type="t")
    def task(thing: Any) -> None: ...

    text = json.dumps({"thing": value}, ensure_ascii=False, separators=(",", ":"))
    ids = [task.enqueue(value).id, terminal.enqueue("t", text)]
    kept = [app.jobs.get(id_).payload for id_ in ids]
    app.close()
    assert [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in kept] == [text, text]
    shown = [job["payload"] for job in terminal.ok("jobs", "list", "--json").json]
    assert [json.dumps(each) for each in shown] == [json.dumps({"thing": value})] * 2
    assert "\x1b" not in terminal.ok("jobs", "show", ids[0]).out


def test_a_key_of_three_thousand_bytes_is_a_key(
    terminal: Terminal, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_STORE", address)
    key = "ü" * 1500
    first = terminal.enqueue("t", "{}", "--idempotency-key", key)
    again = terminal.ok("enqueue", "t", "{}", "--idempotency-key", key, "--json").json
    assert again == {"id": first, "existing": True}


def test_no_jobs_at_all_are_no_mistake(terminal: Terminal) -> None:
    assert terminal.with_app(lambda app: app.enqueue_many([])) == []
