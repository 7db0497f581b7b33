"""Medians, ratios, targets, and how they are written."""

import pytest
from bench.report import formatting
from bench.report.figures import Base, Row, Target, bars, percentile


def _row(*rounds: float, base: Base | None = None, target: Target | None = None) -> Row:
    return Row(name="ours", unit="jobs/s", rounds=list(rounds), base=base, target=target)


def test_a_figure_is_the_median_of_its_rounds() -> None:
    assert _row(1, 50, 3).value == 3


def test_a_ratio_is_the_median_of_the_ratios_round_by_round() -> None:
    # In the second round the machine was ten times slower, for both: the ratio of the medians would be 1.2.
    row = _row(100, 10, 120, base=Base("bare", [200, 20, 100]))
    assert row.ratio == 0.5
    assert row.base_value == 100


@pytest.mark.parametrize(
    ("target", "met"),
    [(Target(0.4), True), (Target(0.6), False), (Target(0.4, at_least=False), False), (Target(0.5), True)],
)
def test_a_target_is_judged_by_the_ratio(target: Target, met: bool) -> None:
    row = _row(50, base=Base("bare", [100]), target=target)
    assert row.met is met
    assert formatting.verdict(row) == ("met" if met else "MISSED")


def test_without_a_denominator_a_target_is_judged_by_the_figure() -> None:
    assert _row(4.9, target=Target(5, at_least=False)).met is True
    assert _row(5.1, target=Target(5, at_least=False)).met is False


def test_a_peer_that_was_not_run_meets_and_misses_nothing() -> None:
    row = _row(100, base=Base("Huey", skip_reason="not run: not installed"), target=Target(7))
    assert row.met is None
    assert (formatting.verdict(row), formatting.ratio(row)) == ("not run", "")
    assert formatting.against(row) == "Huey: not run: not installed"


def test_a_denominator_of_zero_gives_no_ratio() -> None:
    row = _row(100, base=Base("idle peer", [0.0]))
    assert row.ratio is None
    assert formatting.against(row) == "idle peer: 0.00 jobs/s"


def test_rounds_that_do_not_pair_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        _ = _row(1, 2, base=Base("bare", [1])).ratio


@pytest.mark.parametrize(
    ("percent", "expected"), [(1, 1), (50, 50), (99, 99), (100, 100), (0, 1)], ids=lambda each: str(each)
)
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: float) -> None:
    assert percentile([float(each) for each in range(100, 0, -1)], percent) == expected


def test_a_percentile_of_few_values_is_the_worst_rather_than_a_guess() -> None:
    assert percentile([1.0, 2.0, 30.0], 99) == 30.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_chart_shows_each_thing_once() -> None:
    base = Base("bare", [10])
    chart = bars("All", [_row(5, base=base), _row(5, base=Base("peer", [1])), _row(5, base=Base("gone"))])
    assert (chart.bars, chart.ours) == ([("ours", 5), ("bare", 10), ("peer", 1)], 1)


@pytest.mark.parametrize(
    ("value", "text"), [(12345.6, "12,346"), (100, "100"), (12.34, "12.3"), (1.234, "1.23"), (0.0, "0.00")]
)
def test_numbers_have_the_digits_that_mean_something(value: float, text: str) -> None:
    assert formatting.number(value) == text
