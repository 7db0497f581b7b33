"""Moments and durations: what users give, and what is refused."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.moments import (
    DAY,
    MAX_DURATION,
    MAX_TIME,
    SECOND,
    duration,
    parse_duration,
    show_duration,
    to_datetime,
    to_micros,
)
from windlass.errors import InvalidTime

aware = st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30), timezones=st.timezones())


@given(aware)
def test_a_datetime_survives_the_way_there_and_back_to_the_microsecond(moment: datetime) -> None:
    # Compared in UTC: Python calls times in the gap of a clock change unequal to everything.
    assert to_datetime(to_micros(moment)) == moment.astimezone(UTC)


@given(st.integers(0, MAX_TIME - 1))
def test_a_moment_survives_the_way_there_and_back(micros: int) -> None:
    assert to_micros(to_datetime(micros)) == micros


def test_the_zone_is_taken_into_account() -> None:
    assert to_micros(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0


@pytest.mark.parametrize(
    "bad",
    [
        datetime(2026, 1, 1),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2200, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        date(2026, 1, 1),
        "2026-01-01",
        1_767_225_600,
        None,
    ],
)
def test_a_moment_that_is_naive_out_of_range_or_no_datetime_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidTime, match="run_at"):
        to_micros(bad)


@pytest.mark.parametrize(
    ("given_", "micros"),
    [
        (0, 0),
        (0.0, 0),
        (1, SECOND),
        (0.000001, 1),
        (1.5, 1_500_000),
        (timedelta(days=1), DAY),
        ("5m", 300 * SECOND),
        ("90", 90 * SECOND),
        (MAX_DURATION // SECOND, MAX_DURATION),
    ],
)
def test_seconds_timedeltas_and_text_become_microseconds(given_: Any, micros: int) -> None:
    assert duration(given_, "delay") == micros


@pytest.mark.parametrize(
    "bad",
    [
        -1,
        -0.5,
        float("nan"),
        float("inf"),
        float("-inf"),
        1e300,
        10**400,
        -(10**400),
        10**5000,
        MAX_DURATION // SECOND + 1,
        timedelta(seconds=-1),
        timedelta.max,
        "5 minutes",
        "-5",
        True,
        None,
        [1],
    ],
    ids=lambda bad: repr(bad) if not isinstance(bad, int) or abs(bad) < 10**100 else "huge",
)
def test_a_duration_that_is_negative_endless_absurd_or_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidTime, match=r"^delay: (must be from 0 to 100 years, not|.* is not a duration such as)"):
        duration(bad, "delay")


@given(st.floats() | st.integers() | st.timedeltas() | st.text())
def test_a_duration_is_within_its_range_or_refused_and_nothing_else(value: Any) -> None:
    try:
        micros = duration(value, "delay")
    except InvalidTime:
        return
    assert 0 <= micros <= MAX_DURATION


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("500ms", SECOND // 2),
        ("30s", 30 * SECOND),
        ("5m", 300 * SECOND),
        ("2h", 7200 * SECOND),
        ("7d", 7 * DAY),
        ("2w", 14 * DAY),
        ("90", 90 * SECOND),
        ("1.5", 1_500_000),
        (" 3s ", 3 * SECOND),
    ],
)
def test_durations_as_people_write_them(text: str, micros: int) -> None:
    assert parse_duration(text, "keep") == micros


@pytest.mark.parametrize(
    "bad", ["", "s", "-1s", "1e9", "1 s", "1y", "1s1s", "nan", "inf", "١s", "9" * 400, "999999d"]
)
def test_text_that_is_no_duration_is_refused(bad: str) -> None:
    with pytest.raises(InvalidTime, match="keep"):
        parse_duration(bad, "keep")


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"),
        (1500, "2ms"),
        (SECOND, "1s"),
        (1_500_000, "1.5s"),
        (60 * SECOND, "1m"),
        (3661 * SECOND, "1h 1m"),
        (DAY + SECOND, "1d 1s"),
    ],
)
def test_durations_are_shown_in_two_units(micros: int, text: str) -> None:
    assert show_duration(micros) == text
