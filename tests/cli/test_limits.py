"""Limits and keys on the command line: set, shown beside what the code declares, and enqueued with a job."""

import sys
from collections.abc import Iterator

import pytest

from tests.cli.terminal import Terminal

SHOP = """
from windlass import App
app = App("sqlite:///windlass.db?durability=relaxed")
app.queue("images", max_concurrency=8, rate_limit="10/s burst 50", fair=True, weights={"acme": 2})
key = {"concurrency_key": "album:{album}", "key_limit": 2, "key_order": "strict", "key_rate": "10/s"}
@app.task(type="resize", queue="images", **key)
def resize(album: int) -> None: ...
"""
KEPT = "3 attempts, timeout 5m, unless the task says otherwise; keep cancelled 7d, completed 7d, dead 90d"


@pytest.fixture
def shop(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal beside an app whose queue has limits."""
    (terminal.folder / "gallery.py").write_text(SHOP)
    monkeypatch.setenv("WINDLASS_APP", "gallery:app")
    monkeypatch.delitem(sys.modules, "gallery", raising=False)
    yield terminal
    if "gallery" in sys.modules:
        sys.modules["gallery"].app.close()


def test_what_the_code_declares_is_shown(shop: Terminal) -> None:
    said = " ".join(shop.ok("queues", "list").out.split())
    assert said.endswith(f"8 at once, 10/s burst 50, fair, weights acme 2; {KEPT}")
    (queue,) = shop.ok("queues", "list", "--json").json
    assert (queue["max_concurrency"], queue["rate_limit"], queue["fair"]) == (8, "10/s burst 50", True)
    assert queue["declared"]["weights"] == {"acme": 2}
    assert set(map(str, queue["changed"].values())) == {"None", "{}"}


def test_what_an_operator_set_is_kept_beside_what_the_code_says(shop: Terminal) -> None:
    words = ["--max-concurrency", "4", "--rate", "none", "--no-fair", "--weight", "other=0.5", "--weight", "b=3"]
    said = shop.ok("queues", "set", "images", *words, "--ageing", "10m").out
    assert said.splitlines() == [
        "images: 4 at once, any rate, not fair, weights acme 2, other 0.5, b 3 (without effect: not fair), "
        f"ageing 10m; {KEPT}",
        "Set by an operator: max-concurrency (the code says 8 at once), rate-limit (the code says 10/s burst 50), "
        "fair (the code says fair), weights (the code says weights acme 2), ageing",
    ]
    (queue,) = shop.ok("queues", "list", "--json").json
    assert (queue["max_concurrency"], queue["rate_limit"], queue["ageing"]) == (4, None, 600)
    assert queue["changed"] == dict.fromkeys(("max_attempts", "retry", "timeout")) | {
        "retention": {},
        "max_concurrency": 4,
        "rate_limit": "none",
        "fair": False,
        "weights": {"other": 0.5, "b": 3},
        "ageing": 600,
    }
    some = shop.ok("queues", "reset", "images", "rate-limit", "fair", "weights", "ageing").out
    assert some.splitlines()[0] == f"images: 4 at once, 10/s burst 50, fair, weights acme 2; {KEPT}"
    assert (
        shop.ok("queues", "reset", "images").out
        == f"images: 8 at once, 10/s burst 50, fair, weights acme 2; {KEPT}\n"
    )


def test_many_weights_are_counted_in_a_sentence(terminal: Terminal) -> None:
    words = [word for n in range(6) for word in ("--weight", f"t{n}={n + 1}")]
    terminal.ok("queues", "add", "mail")
    said = terminal.ok("queues", "set", "mail", "--fair", *words).out
    assert said.startswith("mail: fair, weights t0 1, t1 2, t2 3, t3 4 and 2 more; 3 attempts")


@pytest.mark.parametrize("width", [80, 120])
def test_the_list_fits_its_columns_with_every_state_and_limit(
    shop: Terminal, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    shop.ok("queues", "set", "images", "--max-concurrency", "4", "--ageing", "10m", "--retry-base", "5s")
    shop.ok("queues", "pause", "images", "--for", "10m")
    shop.ok("queues", "close", "images")
    monkeypatch.setenv("COLUMNS", str(width))
    lines = shop.ok("queues", "list").out.splitlines()
    assert [line for line in lines if len(line) > width or line != line.rstrip() or "…" in line] == []
    assert lines[1].split() == ["images", "paused,", "closed", "0", "0", "0", "0", "0"]
    assert " ".join(" ".join(lines[2:]).split()).endswith(
        "Set by an operator: max-concurrency (the code says 8 at once), ageing, retry"
    )


def test_a_task_makes_the_key_of_a_job_that_is_enqueued_here(shop: Terminal) -> None:
    id_ = shop.enqueue("resize", '{"album": 7}', "--tenant", "acme", "--rate-cost", "3")
    job = shop.ok("jobs", "show", id_, "--json").json
    assert (job["concurrency_key"], job["key_limit"], job["key_strict"]) == ("album:7", 2, True)
    assert (job["key_rate"], job["rate_cost"], job["tenant"]) == ("10/s", 3, "acme")
    shown = shop.ok("jobs", "show", id_).out
    assert "  concurrency   album:7 (2 at once, in strict order, 10/s)\n" in shown
    assert "  rate cost     3\n" in shown


def test_a_job_has_a_key_of_its_own(terminal: Terminal) -> None:
    words = ["--concurrency-key", "{album}", "--key-limit", "3", "--key-strict", "--key-rate", "5/m burst 9"]
    job = terminal.ok("jobs", "show", terminal.enqueue("t", "{}", *words, "--rate-cost", "9"), "--json").json
    assert (job["concurrency_key"], job["key_limit"], job["key_strict"]) == ("{album}", 3, True)
    assert (job["key_rate"], job["rate_cost"]) == ("5/m burst 9", 9)
    plain = terminal.ok("jobs", "show", terminal.enqueue("t", "{}", "--concurrency-key", "k")).out
    assert "  concurrency   k (1 at once)\n" in plain
    assert "rate cost" not in plain


def test_a_queue_that_only_the_app_names_is_known_and_others_are_not(shop: Terminal) -> None:
    shop.ok("queues", "list")
    for verb in ("pause", "resume", "close", "open"):
        assert shop.ok("queues", verb, "images").err == ""
    shop.ok("queues", "reset", "images", "rate")
    ran = shop.run("queues", "close", "imagess")
    assert (ran.code, ran.out) == (1, "")
    assert "no queue 'imagess'; did you mean 'images'? There are default, images" in ran.err


def test_a_rate_is_set_and_reset_by_either_name(shop: Terminal) -> None:
    assert "5/s" in shop.ok("queues", "set", "images", "--rate-limit", "5/s").out
    assert "10/s burst 50" in shop.ok("queues", "reset", "images", "rate").out
