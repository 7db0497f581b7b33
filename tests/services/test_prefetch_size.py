"""PrefetchSize: prefetch as much as the next moments will use, and nothing of what is slow."""

from windlass.worker.runner.held_jobs import AHEAD_SECONDS, MAX_PREFETCHED, PrefetchSize


def test_nothing_is_prefetched_before_anything_is_known() -> None:
    prefetch = PrefetchSize()
    assert prefetch.jobs == 0
    prefetch.measure(1000, 5.0)
    assert prefetch.jobs == 0


def test_the_prefetch_follows_the_rate() -> None:
    prefetch = PrefetchSize()
    prefetch.measure(0, 10.0)
    prefetch.measure(1000, 11.0)
    assert prefetch.jobs == int(1000 * AHEAD_SECONDS)


def test_slow_jobs_are_never_prefetched() -> None:
    prefetch = PrefetchSize()
    prefetch.measure(0, 10.0)
    prefetch.measure(5, 11.0)
    assert prefetch.jobs == 0


def test_the_prefetch_is_bounded() -> None:
    prefetch = PrefetchSize()
    prefetch.measure(0, 10.0)
    prefetch.measure(10_000_000, 11.0)
    assert prefetch.jobs == MAX_PREFETCHED


def test_a_pause_halves_the_rate_and_no_more() -> None:
    prefetch = PrefetchSize()
    prefetch.measure(0, 10.0)
    prefetch.measure(4000, 11.0)
    prefetch.measure(4000, 12.0)
    assert prefetch.jobs == int(2000 * AHEAD_SECONDS)
    prefetch.measure(4000, 13.0)
    assert prefetch.jobs == int(1000 * AHEAD_SECONDS)


def test_a_clock_that_stops_changes_nothing() -> None:
    prefetch = PrefetchSize()
    prefetch.measure(0, 10.0)
    prefetch.measure(1000, 11.0)
    prefetch.measure(2000, 11.0)
    assert prefetch.jobs == int(1000 * AHEAD_SECONDS)


def test_stuck_jobs_end_the_prefetch_at_once() -> None:
    prefetch = PrefetchSize()
    prefetch.measure(0, 10.0)
    prefetch.measure(4000, 11.0)
    prefetch.reset()
    assert prefetch.jobs == 0
