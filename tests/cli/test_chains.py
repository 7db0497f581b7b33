"""Chains as users see them: the place of a link, those around it, the whole of it."""

import sys
from collections.abc import Iterator

import pytest

from tests.cli.terminal import Terminal
from windlass import App, chain
from windlass.worker.load import load_app

APP = """
from windlass import App, Dead

app = App("sqlite:///windlass.db")

@app.task
def fetch(number: int) -> int:
    return number

@app.task
def parse(number: int) -> int:
    if number > 1:
        raise Dead("too large")
    return number
"""


@pytest.fixture
def shop(terminal: Terminal) -> Iterator[App]:
    """An app on the store of the terminal."""
    (terminal.folder / "shop_of_chains.py").write_text(APP)
    app = load_app("shop_of_chains:app")
    yield app
    app.close()
    sys.modules.pop("shop_of_chains")


def _chain(shop: App, number: int, links: int = 3) -> list[str]:
    module = sys.modules["shop_of_chains"]
    handle = chain(module.fetch.job(number), *[module.parse] * links).enqueue()
    return [link.id for link in handle.links]


def _facts(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line.startswith("  ") and len(line) > 16]
    return {line[2:16].strip(): line[16:] for line in lines}


def test_a_link_has_its_place_and_those_around_it(terminal: Terminal, shop: App) -> None:
    ids = _chain(shop, 1)
    facts = _facts(terminal.ok("jobs", "show", ids[1]).out)
    assert facts["chain"] == f"link 2 of 4 (windlass jobs list --chain {ids[1]})"
    assert facts["comes after"] == f"fetch pending {ids[0]}"
    assert facts["comes before"] == f"parse blocked {ids[2]}"
    assert "comes after" not in _facts(terminal.ok("jobs", "show", ids[0]).out)
    assert "comes before" not in _facts(terminal.ok("jobs", "show", ids[3]).out)
    why = terminal.ok("jobs", "why", ids[1]).out
    assert f"It waits for {ids[0]}" in why


def test_a_plain_job_has_no_chain(terminal: Terminal, shop: App) -> None:
    id_ = sys.modules["shop_of_chains"].fetch.enqueue(1).id
    assert "chain" not in _facts(terminal.ok("jobs", "show", id_).out)
    assert [job["id"] for job in terminal.ok("jobs", "list", "--chain", id_, "--json").json] == [id_]


def test_the_whole_chain_is_listed_from_any_link(terminal: Terminal, shop: App) -> None:
    ids = _chain(shop, 1)
    _chain(shop, 2)
    for id_ in ids:
        assert [job["id"] for job in terminal.ok("jobs", "list", "--chain", id_, "--json").json] == ids
    reported = terminal.ok("jobs", "list", "--chain", ids[2], "--limit", "1").out
    assert [line[:36] for line in reported.splitlines()[1:4]] == ids[1:]
    assert "--limit goes further" in reported
    terminal.ok("jobs", "cancel", ids[0])
    terminal.ok("jobs", "delete", ids[0])
    reported = terminal.ok("jobs", "show", ids[1]).out
    assert _facts(reported)["comes after"] == f"{ids[0]}, which is not kept any more"
    assert _facts(reported)["chain"].startswith("link 1 of 3 that were found")


def test_filters_are_refused_beside_a_chain(terminal: Terminal, shop: App) -> None:
    ran = terminal.run("jobs", "list", "--chain", _chain(shop, 1)[0], "--status", "dead")
    assert ran.code == 2
    assert ran.err.startswith("error: --status: cannot be given together with --chain")
