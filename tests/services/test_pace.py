"""Pace: prefetch as much as the next moments will use, and nothing of what is slow."""

from windlass.worker.pace import AHEAD_SECONDS, MOST_PREFETCHED, Pace


def test_nothing_is_prefetched_before_anything_is_known() -> None:
    pace = Pace()
    assert pace.prefetch == 0
    pace.measure(1000, 5.0)
    assert pace.prefetch == 0


def test_the_prefetch_follows_the_rate() -> None:
    pace = Pace()
    pace.measure(0, 10.0)
    pace.measure(1000, 11.0)
    assert pace.prefetch == int(1000 * AHEAD_SECONDS)


def test_slow_jobs_are_never_prefetched() -> None:
    pace = Pace()
    pace.measure(0, 10.0)
    pace.measure(5, 11.0)
    assert pace.prefetch == 0


def test_the_prefetch_is_bounded() -> None:
    pace = Pace()
    pace.measure(0, 10.0)
    pace.measure(10_000_000, 11.0)
    assert pace.prefetch == MOST_PREFETCHED


def test_a_pause_halves_the_rate_and_no_more() -> None:
    pace = Pace()
    pace.measure(0, 10.0)
    pace.measure(4000, 11.0)
    pace.measure(4000, 12.0)
    assert pace.prefetch == int(2000 * AHEAD_SECONDS)
    pace.measure(4000, 13.0)
    assert pace.prefetch == int(1000 * AHEAD_SECONDS)


def test_a_clock_that_stands_still_changes_nothing() -> None:
    pace = Pace()
    pace.measure(0, 10.0)
    pace.measure(1000, 11.0)
    pace.measure(2000, 11.0)
    assert pace.prefetch == int(1000 * AHEAD_SECONDS)


def test_stuck_jobs_end_the_prefetch_at_once() -> None:
    pace = Pace()
    pace.measure(0, 10.0)
    pace.measure(4000, 11.0)
    pace.slow()
    assert pace.prefetch == 0
