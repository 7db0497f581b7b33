"""Cron against a walker that looks at every minute, in zones that move their clocks in every way there is."""

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.parts import in_part
from windlass.core.moments import SECOND, Micros, to_datetime, to_micros
from windlass.core.schedules.cron import SHORTHANDS, Cron, next_match, parse_cron, parse_zone
from windlass.errors import InvalidTime

ZONES = {
    **dict.fromkeys(("UTC", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns", "America/Havana"), 2025),
    **dict.fromkeys(("Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Chisinau", "Atlantic/Azores"), 2025),
    **dict.fromkeys(("America/New_York", "America/Santiago", "Pacific/Easter", "Pacific/Chatham"), 2025),
    **dict.fromkeys(("Pacific/Auckland", "Australia/Lord_Howe", "Australia/Adelaide", "Antarctica/Troll"), 2025),
    **dict.fromkeys(("Pacific/Norfolk", "Africa/Casablanca", "Africa/Cairo", "Asia/Gaza", "Asia/Beirut"), 2024),
    # Those that gave their rules up, or took others.
    **dict.fromkeys(("America/Asuncion", "Asia/Almaty", "America/Nuuk", "Antarctica/Casey", "America/Ojinaga"), 2023),
    **dict.fromkeys(("Asia/Tehran", "Asia/Amman", "Asia/Damascus", "America/Mexico_City", "Africa/Juba"), 2021),
    **dict.fromkeys(("America/Sao_Paulo", "Pacific/Fiji", "Europe/Volgograd", "Asia/Pyongyang"), 2018),
    **dict.fromkeys(("Europe/Istanbul", "America/Caracas"), 2015),
    "Pacific/Apia": 2011,  # without a 30th of December
    "Pacific/Kwajalein": 1993,  # without a 21st of August
}
"""Forty in which something happened, and the first of the three years in which it did."""
FIXED = ["30 2 * * *", "0 0 * * *", "15 1,3 * * *", "59 23 * * *", "0 9 * * 1-5", "0 0 1 * *", "5 4 * * SUN"]
OPEN = ["*/7 * * * *", "30 * * * *", "0 */5 * * *", "*/20 1 * * *", "* 2 * * 6,7"]


def walk(cron: Cron, zone: str, begin: datetime, end: datetime) -> list[Micros]:
    """Every minute of real time, and of local time that never was."""
    minute, hour, *_ = cron.minutes.split()
    fixed = not minute.startswith("*") and not hour.startswith("*")
    found: set[datetime] = set()
    before = None
    for at, local in minutes_of(zone, begin, end):
        wall = local.replace(tzinfo=None)
        if before is not None and fixed:
            skipped = before + timedelta(minutes=1)
            while skipped < wall:
                if matches(cron.minutes, skipped):
                    found.add(at)
                skipped += timedelta(minutes=1)
        if matches(cron.minutes, wall) and not (fixed and local.fold):
            found.add(at)
        before = wall
    return sorted(to_micros(each, "") for each in found)


@lru_cache(maxsize=10)
def minutes_of(zone: str, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    here, count = ZoneInfo(zone), (end - begin) // timedelta(minutes=1)
    all_ = (begin + timedelta(minutes=minute) for minute in range(count))
    return [(at, at.astimezone(here)) for at in all_]


def matches(minutes: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = minutes.split()
    if wall.minute not in allowed(minute, 0, 59):
        return False
    days = [allowed(day, 1, 31), allowed(weekday, 0, 7)]
    on_day = [wall.day in days[0], wall.isoweekday() % 7 in days[1] or (7 in days[1] and wall.isoweekday() == 7)]
    either = not day.startswith("*") and not weekday.startswith("*")
    return (
        wall.hour in allowed(hour, 0, 23)
        and wall.month in allowed(month, 1, 12)
        and (any(on_day) if either else all(on_day))
    )


@lru_cache(maxsize=100)
def allowed(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.replace("SUN", "0").split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin, end = (low, high) if span == "*" else (int(first), int(last or first))
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def ticks(cron: Cron, zone: str, begin: Micros, end: Micros) -> list[Micros]:
    found: list[Micros] = []
    at = next_match(cron, zone, begin - 1)
    while at is not None and at < end:
        found.append(at)
        at = next_match(cron, zone, at)
    return found


def transitions(zone: str, year: int) -> list[datetime]:
    """The hours in which the clocks of a zone are moved in three years, and New Year."""
    here, found = ZoneInfo(zone), []
    at = datetime(year, 1, 1, tzinfo=UTC)
    offset = at.astimezone(here).utcoffset()
    for _ in range(3 * 366 * 24):
        at += timedelta(hours=1)
        if (now := at.astimezone(here).utcoffset()) != offset:
            offset = now
            found.append(at)
    return [*found, datetime(year + 1, 1, 1, tzinfo=UTC)]


STRANGE = (
    *("UTC", "Asia/Kathmandu", "Europe/Dublin", "America/Santiago", "Australia/Lord_Howe", "Antarctica/Troll"),
    *("Africa/Casablanca", "Asia/Gaza", "Antarctica/Casey", "Pacific/Apia"),
)
"""Those that `make check` walks through: a half hour, two hours, an hour back in winter, midnight, a day left out."""


@pytest.mark.parametrize("zone", in_part(ZONES, STRANGE))
def test_it_says_what_a_walk_of_every_minute_says_around_every_move_of_the_clocks(zone: str) -> None:
    for at in transitions(zone, ZONES[zone]):
        begin, end = at - timedelta(hours=26), at + timedelta(hours=26)
        for text in (*FIXED, *OPEN):
            cron = parse_cron(text)
            walked = walk(cron, zone, begin, end)
            # What is right at the beginning may be the end of a gap that the walker has not seen.
            inside = [tick for tick in ticks(cron, zone, to_micros(begin), to_micros(end)) if tick > to_micros(begin)]
            assert inside == [tick for tick in walked if tick > to_micros(begin)], (text, at)


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("30 2 * * *", "Europe/Berlin", "2025-03-30T00:00+00:00", "2025-03-30T01:00+00:00"),  # right after the gap
        ("30 2 * * *", "Europe/Berlin", "2025-10-26T00:00+00:00", "2025-10-26T00:30+00:00"),  # the first of two
        ("30 2 * * *", "Europe/Berlin", "2025-10-26T00:30+00:00", "2025-10-27T01:30+00:00"),  # and not the second
        ("30 2 * * *", "Europe/Berlin", "2025-10-26T01:10+00:00", "2025-10-27T01:30+00:00"),
        ("30 * * * *", "Europe/Berlin", "2025-10-26T00:30+00:00", "2025-10-26T01:30+00:00"),  # each time
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00+00:00", "2104-02-29T00:00+00:00"),  # 2100 is no leap year
        ("15 30 9 * * *", "UTC", "2025-01-01T09:30:15+00:00", "2025-01-02T09:30:15+00:00"),
        ("*/20 * * * * *", "UTC", "2025-01-01T09:30:20+00:00", "2025-01-01T09:30:40+00:00"),
        ("10 30 2 * * *", "Europe/Berlin", "2025-03-30T00:00+00:00", "2025-03-30T01:00:10+00:00"),
        ("@daily", "America/New_York", "2025-07-01T12:00+00:00", "2025-07-02T04:00+00:00"),
        ("0 12 * * MON#2", "UTC", "2025-06-01T00:00+00:00", "2025-06-09T12:00+00:00"),
        ("0 0 L * *", "UTC", "2024-02-01T00:00+00:00", "2024-02-29T00:00+00:00"),
    ],
)
def test_what_comes_next(text: str, zone: str, after: str, expected: str) -> None:
    found = next_match(parse_cron(text), zone, to_micros(datetime.fromisoformat(after)))
    assert found is not None
    assert to_datetime(found) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 0 31 2 *", "never matches: there is no such day (position 5)"),
        ("0 0 30 2 *", "never matches"),
        ("0 0 31 4,6,9,11 *", "never matches"),
        ("61 * * * *", "'61' at position 1 is no minute (0-59)"),
        ("* 24 * * *", "'24' at position 3 is no hour"),
        ("0 9 * * 1-8", "'1-8' at position 9 is no day of week"),
        ("0 9 * FOO *", "'FOO' at position 7 is no month"),
        ("0  9 * 5-3 *", "'5-3' at position 8 is no month (1-12 or JAN-DEC); a range goes up: 5 comes after 3"),
        ("0 9 * * FRI-MON", "; a range goes up: FRI comes after MON"),
        ("0 9 * * 1-8", "(0-7 or SUN-SAT, MON#2, 5L)"),
        ("*/0 * * * *", "'*/0' at position 1 is no minute (0-59); a step is 1 or more"),
        ("0 9 ? * MON", "'?' at position 5 is no day of month (1-31 or L); write * for any"),
        ("99 * * * * *", "'99' at position 1 is no second"),
        ("* * * *", "has 4 fields, not 5"),
        ("", "has 0 fields"),
        ("nightly", "has 1 field, not 5"),
        ("@reboot", "is none of @yearly"),
        ("* " * 200, "at most 200 characters"),
    ],
)
def test_an_expression_that_cannot_be_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidTime, match=r"^cron: ") as refused:
        parse_cron(text)
    assert said in str(refused.value)


def test_every_shorthand_has_a_next_time_and_words() -> None:
    for shorthand in SHORTHANDS:
        assert next_match(parse_cron(shorthand), "UTC", 0)
        assert parse_cron(shorthand).in_words


def test_words_are_for_people() -> None:
    assert parse_cron("0 9 * * 1-5").in_words == "At 09:00 on Monday through Friday"
    assert parse_cron("*/2 * * * * *").in_words == "Every other second of every minute"


def test_a_zone_that_is_not_known_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidTime, match="'Mars/Olympus' is not a time zone"):
        parse_zone("Mars/Olympus")
    for strange in ("", "../etc/passwd", "Europe/Berlin\x00", "/etc/localtime"):
        with pytest.raises(InvalidTime):
            parse_zone(strange)


@given(st.text(alphabet="0123456789*/,-#LWMONFRIJA @?\x00é٣", max_size=30))
def test_whatever_is_written_is_refused_or_has_a_next_time_soon(text: str) -> None:
    began = time.process_time()
    try:
        cron = parse_cron(text)
    except InvalidTime:
        return
    finally:
        assert time.process_time() - began < 5, "it hangs"
    assert next_match(cron, "Europe/Berlin", 1_750_000_000 * SECOND)
