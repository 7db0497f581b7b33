"""What the soak concludes from its samples and its ledger."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tools.soak.ledger import account
from tools.soak.verdict import Point, judge, theil_sen

HOURS = 2


def samples(value: Callable[[float], float]) -> list[Point]:
    """One each 15 s; the function gets hours."""
    return [(at, value(at / 3600)) for at in range(0, HOURS * 3600, 15)]


def wave(hours: float) -> float:
    """Noise that repeats: -1, 0 or 1."""
    return round(hours * 240) % 3 - 1


@pytest.mark.parametrize(
    ("series", "value", "verdict"),
    [
        ("sqlite/uss_mb/runner 1", lambda hours: 50 + wave(hours), "flat"),
        ("sqlite/uss_mb/runner 1", lambda hours: 50 + 1.5 * hours, "flat"),
        ("sqlite/uss_mb/runner 1", lambda hours: 50 + 4 * hours, "GROWS"),
        ("sqlite/uss_mb/runner 1", lambda hours: 50 - 4 * hours, "flat"),
        ("sqlite/uss_mb/runner 1", lambda hours: 90 if hours < 0.2 else 50, "flat"),
        ("redis/fds/producer", lambda hours: 20 + wave(hours), "flat"),
        ("redis/fds/producer", lambda hours: 20 + int(2 * hours), "GROWS"),
        ("redis/rows/jobs", lambda hours: 2000 + 50 * wave(hours), "flat"),
        ("redis/rows/jobs", lambda hours: 2000 + 500 * hours, "GROWS"),
        ("redis/rows/tombstones", lambda hours: 50_000 * hours, "kept longer"),
    ],
)
def test_a_series_is_flat_within_its_tolerance(series: str, value: Callable[[float], float], verdict: str) -> None:
    assert judge(series, samples(value)).verdict == verdict


def test_growth_in_the_warm_up_does_not_count() -> None:
    judged = judge("sqlite/uss_mb/runner 1", samples(lambda hours: 50 + 20 * min(hours, 0.3)))
    assert (judged.verdict, judged.first, judged.last) == ("flat", 56.0, 56.0)


def test_the_slope_is_not_moved_by_outliers() -> None:
    points = samples(lambda hours: 10 + 3 * hours)
    points[100:110] = [(at, 1e6) for at, _ in points[100:110]]
    assert theil_sen(points) * 3600 == pytest.approx(3, rel=0.01)


def test_few_samples_have_no_verdict() -> None:
    assert judge("redis/fds/producer", [(0, 1), (15, 1)]).verdict == "too few samples"


def test_the_ledger_shows_lost_jobs_and_attempts_without_a_reason(tmp_path: Path) -> None:
    (tmp_path / "accepted").write_text("a done\nb done\nc failed\nd any\ne done\nf done\n")
    (tmp_path / "ledger").write_text(
        "began a 1 10 1 quick\ndone a 1 10 1 quick\n"
        "began c 1 10 1 doomed\nfailed c 1 10 1 doomed\nbegan c 2 10 1 doomed\nfailed c 2 10 1 doomed\n"
        "began e 1 66 1 quick\nbegan e 2 10 1 quick\ndone e 2 10 1 quick\n"
        "began f 1 10 1 quick\ndone f 1 10 1 quick\nbegan f 2 11 1 quick\ndone f 2 11 1 quick\n"
    )
    found = account(tmp_path, killed={66})
    assert (found.accepted, found.lost, found.again, found.killed) == (6, ("b",), ("f",), 1)
