"""Moments and durations at the edges: people give datetimes and `30s`, stores count microseconds.

Internally, a moment is an integer of microseconds since 1970 in UTC: exact, ordered the same on every store.
"""

import re
from datetime import UTC, datetime, timedelta

from windlass.core.text import shown
from windlass.errors import InvalidTime

Micros = int

SECOND: Micros = 1_000_000
DAY: Micros = 86_400 * SECOND
MIN_TIME = 0
MAX_TIME: Micros = 7_258_118_400 * SECOND
"""2200-01-01: a later run_at is a mistake, and some stores cannot hold it."""

MAX_DURATION: Micros = 100 * 365 * DAY

Duration = float | timedelta | str
"""Seconds, a timedelta, or text such as "500ms", "30s", "5m", "2h" or "7d"."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)?")


def to_micros(moment: datetime, field: str = "run_at") -> Micros:
    """A datetime as a moment; a naive one is refused, because it means another time on each machine."""
    if not isinstance(moment, datetime):
        raise InvalidTime(field, f"must be a datetime, not {type(moment).__name__}")
    if moment.utcoffset() is None:
        raise InvalidTime(field, "has no time zone; use datetime.now(timezone.utc) or .replace(tzinfo=...)")
    micros = (moment - _EPOCH) // _MICROSECOND
    if not MIN_TIME <= micros < MAX_TIME:
        raise InvalidTime(field, f"{moment.isoformat()} is outside 1970 to 2200")
    return micros


def to_datetime(micros: Micros) -> datetime:
    """A moment as an aware datetime in UTC; values beyond the calendar, from rows edited by hand, are clamped."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return _LAST if micros > 0 else _FIRST


def duration(value: Duration, field: str) -> Micros:
    """A duration as microseconds; refuses what is not a duration, and negative, infinite or too long ones."""
    if isinstance(value, timedelta):
        micros = value // _MICROSECOND
    else:
        seconds = _seconds(value, field)
        micros = round(seconds * SECOND) if 0 <= seconds <= MAX_DURATION // SECOND else -1
    if not 0 <= micros <= MAX_DURATION:
        raise InvalidTime(field, f"must be from 0 to 100 years, not {shown(value)}")
    return micros


parse_duration = duration
"""The same, where it is always text: on a command line or in a file."""


def _seconds(value: object, field: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    match = _TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        others = "a number of seconds, or a timedelta"
        raise InvalidTime(field, f"{shown(value)} is not a duration such as 500ms, 30s, 5m, 2h or 7d, {others}")
    return float(match[1]) * _UNITS[match[2] or "s"]


def show_duration(micros: Micros) -> str:
    """A duration for people: the two largest units, or milliseconds."""
    if micros < SECOND:
        return f"{micros / 1000:.0f}ms" if micros else "0s"
    if micros < 60 * SECOND:
        return f"{micros / SECOND:.1f}s".replace(".0s", "s")
    seconds, parts = micros // SECOND, []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
