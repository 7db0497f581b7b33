"""The model on paper of several nodes: it finds costs again that figures were made of, and knows what stops it."""

import json
from pathlib import Path

import pytest
from tools import machines
from tools.machines import Costs, batch_seconds, fitted, hold_seconds, on_paper

STRICT = "profile, strict order"
COSTS = Costs(0.001, 0.0002, True)


def test_the_costs_that_figures_were_made_of_are_found_again() -> None:
    cells = {(batch, 1): batch / batch_seconds(COSTS, batch) for batch in (1, 10, 50, 200)}
    found = fitted({**cells, (50, 4): 1.0})
    assert found.statement == pytest.approx(COSTS.statement)
    assert found.job == pytest.approx(COSTS.job)


def test_in_strict_order_more_claimers_than_fit_into_a_turn_add_nothing() -> None:
    turn = 10 / hold_seconds(COSTS, 10)
    assert on_paper(STRICT, COSTS, 10, 16) == turn < on_paper("PostgreSQL", COSTS, 10, 16)
    assert on_paper("profile, loose order", COSTS, 10, 16) > turn
    assert on_paper(STRICT, COSTS, 10, 1) == 10 / batch_seconds(COSTS, 10)


def test_costs_come_from_the_published_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = {
        "round-trips": {
            f"{STRICT}: batches of 10, 1 claimer": [2, 1, 3],
            f"{STRICT}: batches of 50, 4 claimers": [7],
        },
        "cluster": {"one queue: its master": [40]},
    }
    results = [
        {"section": {"name": name, "rows": [{"name": row, "rounds": rounds} for row, rounds in rows.items()]}}
        for name, rows in sections.items()
    ]
    (tmp_path / "results.json").write_text(json.dumps({"results": results}))
    monkeypatch.setattr(machines, "RESULTS", tmp_path / "results.json")
    assert machines.measured() == {STRICT: {(10, 1): 2, (50, 4): 7}}
    assert machines.redis_job() == (40 / 1e6, True)
