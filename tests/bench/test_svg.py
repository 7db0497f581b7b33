"""Charts that any viewer can read."""

from xml.etree import ElementTree

import pytest
from bench.report.figures import Bars, Line, Lines
from bench.report.svg import WIDTH, draw, ticks

SVG = "{http://www.w3.org/2000/svg}"


def _texts(drawn: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def test_bars_are_as_long_as_their_values() -> None:
    drawn = draw(Bars("Rates", "jobs/s", [("ours", 50.0), ("bare", 100.0)], 1))
    ours, bare = ElementTree.fromstring(drawn).iter(f"{SVG}rect")
    assert float(bare.attrib["width"]) == 2 * float(ours.attrib["width"])
    assert ours.attrib["fill"] != bare.attrib["fill"]
    assert {"ours", "bare", "50.0", "100", "Rates (jobs/s)"} <= set(_texts(drawn))


def test_what_is_written_in_a_chart_cannot_break_it() -> None:
    assert '<a> & "b"' in _texts(draw(Bars("x", "y", [('<a> & "b"', 1.0)], 1)))


def test_bars_of_nothing_can_be_drawn() -> None:
    assert _texts(draw(Bars("Idle", "%", [("ours", 0.0)], 1))) == ["Idle (%)", "ours", "0.00"]
    assert _texts(draw(Bars("None", "%", [], 0))) == ["None (%)"]


def test_lines_stay_inside_and_begin_at_zero() -> None:
    drawn = draw(Lines("Memory", "jobs", "MiB", [Line("ours", [(0.0, 37.0), (500.0, 38.0), (1000.0, 41.0)])]))
    root = ElementTree.fromstring(drawn)
    curve = next(root.iter(f"{SVG}polyline")).attrib["points"]
    points = [tuple(map(float, pair.split(","))) for pair in curve.split()]
    assert all(0 <= x <= WIDTH and 0 <= y <= float(root.attrib["height"]) for x, y in points)
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert "0" in _texts(drawn)


def test_lines_without_points_can_be_drawn() -> None:
    assert "Empty (ms)" in _texts(draw(Lines("Empty", "x", "ms", [])))


@pytest.mark.parametrize("most", [0.0, 0.003, 0.9, 1.0, 7.3, 100.0, 999_999.0, 1_000_000.0])
def test_ticks_are_few_round_and_reach_far_enough(most: float) -> None:
    made = ticks(most)
    assert made[0] == 0
    assert made[-1] >= most
    assert 3 <= len(made) <= 11
    assert made[-1] < 2 * most or most == 0
