"""Meters: histograms that may be merged in any order, and never lie by more than a sixteenth."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from windlass.core.moments import DAY, SECOND
from windlass.core.stats.meter import INTERVAL, Histogram, Meter, Recent, bin_of, histogram, interval_of, middle
from windlass.store.rows import merged_histogram

TIMES = some.integers(0, 400 * DAY)
HISTOGRAMS = some.lists(TIMES, max_size=30).map(histogram)
NOW = interval_of(1_700_000_000 * SECOND) + 4 * SECOND


@given(TIMES)
def test_the_middle_of_a_bucket_is_within_a_sixteenth_of_every_value_in_it(value: int) -> None:
    assert abs(middle(bin_of(value)) - value) <= value / 16


@given(TIMES, TIMES)
def test_buckets_are_in_the_order_of_their_values(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert bin_of(low) <= bin_of(high)


def test_no_bucket_is_left_out() -> None:
    assert sorted({bin_of(value) for value in range(2**12)}) == list(range(bin_of(2**12 - 1) + 1))


@pytest.mark.parametrize("value", [-1, -(10**9)])
def test_a_clock_that_was_set_back_counts_as_no_time(value: int) -> None:
    assert bin_of(value) == 0


@given(some.lists(TIMES, min_size=1, max_size=200), some.floats(0, 1))
def test_a_quantile_is_within_a_sixteenth_of_the_exact_one(values: list[int], share: float) -> None:
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    found = histogram(values).quantile(share)
    assert found is not None
    assert abs(found - exact) <= exact / 16


def test_nothing_has_no_quantile() -> None:
    assert Histogram().quantile(0.5) is None


@given(HISTOGRAMS, HISTOGRAMS, HISTOGRAMS)
def test_histograms_are_merged_in_any_order(a: Histogram, b: Histogram, c: Histogram) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c)) == c.merge(a).merge(b)


@given(some.lists(TIMES), some.lists(TIMES))
def test_merged_histograms_are_those_of_all_values(some_values: list[int], others: list[int]) -> None:
    assert histogram(some_values).merge(histogram(others)) == histogram(some_values + others)


def test_merging_changes_neither_of_the_two() -> None:
    one, other = histogram([1]), histogram([1])
    one.merge(other)
    assert one == other == histogram([1])


def test_meters_add_up_and_keep_their_place() -> None:
    one = Meter(
        queue="q", type="t", interval_start=INTERVAL, completed=1, failed=2, wait=histogram([1]), run=histogram([2])
    )
    other = Meter(queue="other", type="other", completed=3, dead=1, wait=histogram([1]), run=histogram([5]))
    both = one.add(other)
    assert (both.queue, both.type, both.interval_start) == ("q", "t", INTERVAL)
    assert (both.completed, both.failed, both.dead, both.ended, both.bad) == (4, 2, 1, 7, 3)
    assert (both.wait, both.run) == (histogram([1, 1]), histogram([2, 5]))


def meter(slots_ago: int, completed: int, queue: str = "q") -> Meter:
    return Meter(queue=queue, type="t", interval_start=interval_of(NOW) - slots_ago * INTERVAL, completed=completed)


def test_a_rate_counts_the_slot_that_is_not_over_as_long_as_it_is() -> None:
    recent = Recent(NOW, (meter(0, 8), meter(1, 20), meter(9, 1000)))
    assert recent.rate(10 * SECOND) == 2.0, "28 in the 14 seconds of two slots"


def test_the_timeline_has_a_number_for_every_interval_that_is_over() -> None:
    recent = Recent(NOW, (meter(0, 99), meter(1, 5), meter(3, 2), meter(3, 1, "other"), meter(5, 7)))
    assert recent.completed_by_interval(4) == [0, 3, 0, 5]


def test_recent_meters_are_parted_and_added_up() -> None:
    recent = Recent(NOW, (meter(0, 1), meter(1, 2), meter(1, 4, "other")))
    assert {queue: part.total().completed for queue, part in recent.by(lambda each: each.queue).items()} == {
        "q": 3,
        "other": 4,
    }
    assert recent.since(SECOND).total().completed == 1
    assert recent.total().completed == 7


def test_histograms_joined_to_a_list_are_added_up_and_an_unreadable_one_counts_as_empty() -> None:
    assert merged_histogram("[]") == Histogram()
    assert merged_histogram('[{"1":2,"9":1},{"9":3}]') == Histogram({1: 2, 9: 4})
    assert merged_histogram('[{"1":2},{"x":5},[7],nonsense,{"1":1}]') == Histogram({1: 3})
