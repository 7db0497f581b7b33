"""Rates: texts, and token buckets that never give more than the rate brings in any window, and a burst."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.runners import within_rate
from windlass.core.flow.rate import Rate, TokenBucket, full, parse_rate, price, ready_at, refilled, spent, wait_for
from windlass.core.moments import DAY, SECOND, Micros
from windlass.errors import InvalidOption

rates = st.builds(
    Rate,
    tokens=st.integers(1, 50),
    period=st.sampled_from([SECOND, 7 * SECOND, 60 * SECOND]),
    burst=st.integers(1, 30),
)


@pytest.mark.parametrize(
    ("text", "tokens", "period", "burst"),
    [
        ("10/s", 10, SECOND, 10),
        (" 600 / m ", 600, 60 * SECOND, 600),
        ("1/h", 1, 3600 * SECOND, 1),
        ("5/10s", 5, 10 * SECOND, 5),
        ("3/d burst 50", 3, DAY, 50),
    ],
)
def test_a_rate_is_read_as_people_write_it(text: str, tokens: int, period: Micros, burst: int) -> None:
    assert parse_rate(text, "rate") == Rate(tokens, period, burst)


@given(rates)
def test_a_rate_is_written_as_it_is_read(rate: Rate) -> None:
    assert parse_rate(str(rate), "rate") == rate


@pytest.mark.parametrize(
    "text",
    ["", "10", "/s", "10/w", "-1/s", "0/s", "1.5/s", "10/s burst 0", "9999999/s", "1/2d", "1/0s", 10, None, "१/s"],
)
def test_what_is_no_rate_is_refused_by_its_name(text: object) -> None:
    with pytest.raises(InvalidOption, match="key_rate"):
        parse_rate(text, "key_rate")


def test_a_new_token_bucket_is_full() -> None:
    assert full(Rate(10, SECOND, 5), 0).tokens == 5


def test_tokens_come_one_by_one_and_no_more_than_a_burst() -> None:
    rate = Rate(10, SECOND, 5)
    empty = spent(full(rate, 0), 5)
    assert [refilled(empty, rate, at).tokens for at in (0, 99_999, 100_000, 499_999, 500_000, DAY)] == [
        0,
        0,
        1,
        4,
        5,
        5,
    ]


def test_a_clock_that_is_set_back_brings_nothing_and_takes_nothing() -> None:
    rate = Rate(10, SECOND, 5)
    token_bucket = spent(full(rate, SECOND), 3)
    assert refilled(token_bucket, rate, 0) == token_bucket
    assert refilled(refilled(token_bucket, rate, 0), rate, SECOND + 100_000).tokens == 3


def test_what_was_granted_and_may_still_be_spent_leaves_no_room() -> None:
    rate = Rate(10, SECOND, 5)
    assert refilled(spent(full(rate, 0), 5), rate, DAY, outstanding=3).tokens == 2
    assert refilled(spent(full(rate, 0), 5), rate, DAY, outstanding=9).tokens == 0


def test_a_token_bucket_of_another_rate_keeps_its_tokens_as_far_as_they_fit() -> None:
    hour = Rate(10, 3600 * SECOND, 10)
    token_bucket = spent(full(hour, 0), 3)
    assert refilled(token_bucket, Rate(1, SECOND, 100), 0).tokens == 7
    assert refilled(token_bucket, Rate(1, SECOND, 2), 0).tokens == 2


def test_no_job_costs_more_than_a_token_bucket_holds() -> None:
    assert (price(3, Rate(1, SECOND, 5)), price(50, Rate(1, SECOND, 5))) == (3, 5)


@given(rates, st.integers(0, 30), st.integers(1, 60), st.integers(0, 10**9))
def test_the_moment_is_exact(rate: Rate, gone: int, wanted: int, now: Micros) -> None:
    token_bucket = spent(full(rate, now), min(gone, rate.burst))
    moment, enough = ready_at(token_bucket, rate, wanted), price(wanted, rate)
    assert moment == now + wait_for(token_bucket, rate, wanted)
    assert refilled(token_bucket, rate, moment).tokens >= enough
    assert moment == now or refilled(token_bucket, rate, moment - 1).tokens < enough


@given(
    rates, st.lists(st.tuples(st.integers(0, 5 * SECOND), st.integers(1, 40), st.integers(0, SECOND)), max_size=40)
)
def test_no_window_ever_exceeds_the_rate(rate: Rate, steps: list[tuple[Micros, int, Micros]]) -> None:
    """Time passes, or is set back a little; as much is spent as there is."""
    now: Micros = DAY
    token_bucket: TokenBucket = full(rate, now)
    starts = []
    for passed, wanted, back in steps:
        now += passed - back
        token_bucket = refilled(token_bucket, rate, now)
        taken = min(token_bucket.tokens, wanted)
        token_bucket = spent(token_bucket, taken)
        starts += [(now, 1)] * taken
    assert within_rate(starts, rate)
