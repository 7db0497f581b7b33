"""Cron: when an expression matches next in a time zone, with stated rules for daylight saving changes.

Five fields (minute, hour, day of month, month, day of week) or six (seconds first); names, ranges, steps, lists, `L`,
`MON#2`, and `@daily` and the like. If both day fields are given, either is enough.

A skipped local time runs once, right after the gap. A repeated one runs once if the hour and the minute are given,
and each time if one of them begins with a star. Seconds count within the minute.

cronsim parses the fields. Windlass searches the days itself, because cronsim misses minutes where clocks change by
half an hour (Lord Howe) or at a quarter to (Chatham).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from windlass.core.moments import MAX_TIME, SECOND, Micros, to_datetime
from windlass.core.text import shown
from windlass.errors import InvalidTime

MAX_EXPRESSION_LENGTH = 200
SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day of month": "1-31 or L",
    "month": "1-12 or JAN-DEC",
    "day of week": "0-7 or SUN-SAT, MON#2, 5L",
}
SECOND_FIELD = {"second": "0-59"}
_WORD = re.compile(r"\S+")
_PART = re.compile(r"[^,]+")
_ANY_DAY = datetime(2000, 1, 1)
_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = to_datetime(MAX_TIME).date()
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE


class Cron(msgspec.Struct, frozen=True):
    """A checked expression: five fields, and the seconds within the minute at which it matches."""

    text: str
    """As given."""
    minutes: str
    seconds: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        return self.text

    @property
    def in_words(self) -> str:
        """The expression in English."""
        words: str = CronSim(SHORTHANDS.get(self.text.lower(), self.text), _ANY_DAY).explain()
        return words.replace("second second", "other second")


def parse_cron(text: object, field: str = "cron") -> Cron:
    """Parse and check an expression; the error names the wrong part and its position."""
    if not isinstance(text, str):
        raise InvalidTime(field, f"must be text such as '0 9 * * 1-5', not {type(text).__name__}")
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise InvalidTime(field, f"must have at most {MAX_EXPRESSION_LENGTH} characters, not {len(text)}")
    if text.strip().startswith("@"):
        return _shorthand(text.strip(), field)
    words = list(_WORD.finditer(text))
    names = {5: FIELDS, 6: SECOND_FIELD | FIELDS}.get(len(words))
    if names is None:
        count = "1 field" if len(words) == 1 else f"{len(words)} fields"
        raise InvalidTime(field, f"{shown(text)} has {count}, not 5 (from the minute) or 6 (seconds first)")
    for index, ((name, allowed), word) in enumerate(zip(names.items(), words, strict=True)):
        if not _is_valid(index, len(words), word[0]):
            begin, end = _invalid_span(index, len(words), word)
            hint = _hint(index, len(words), text[begin:end])
            problem = (
                f"{shown(text)}: {shown(text[begin:end])} at position {begin + 1} is no {name} ({allowed}){hint}"
            )
            raise InvalidTime(field, problem, text=text, part=(begin, end))
    minutes = " ".join(word[0] for word in words[-5:])
    try:
        seconds = CronSim(text, _ANY_DAY).seconds
        next(CronSim(minutes, _ANY_DAY))
    except (CronSimError, StopIteration):
        begin = words[-3].start()
        problem = f"{shown(text)} never matches: there is no such day (position {begin + 1})"
        raise InvalidTime(field, problem, text=text, part=(begin, words[-2].end())) from None
    return Cron(text.strip(), minutes, tuple(sorted(seconds)))


def _shorthand(text: str, field: str) -> Cron:
    if text.lower() not in SHORTHANDS:
        raise InvalidTime(field, f"{shown(text)} is none of {', '.join(SHORTHANDS)}")
    return Cron(text, SHORTHANDS[text.lower()])


def _is_valid(index: int, count: int, word: str) -> bool:
    """Whether one field is valid, the others being `*`."""
    words = ["*"] * count
    words[index] = word
    try:
        CronSim(" ".join(words), _ANY_DAY)
    except (CronSimError, ValueError, AssertionError):
        return False
    return word.isascii()


def _invalid_span(index: int, count: int, word: re.Match[str]) -> tuple[int, int]:
    """The span of the invalid part of a list; the whole field if each part alone is valid."""
    for part in _PART.finditer(word[0]):
        if not _is_valid(index, count, part[0]):
            return word.start() + part.start(), word.start() + part.end()
    return word.span()


def _hint(index: int, count: int, part: str) -> str:
    """A hint for syntax of other crons and for ranges in the wrong order."""
    values, _, step = part.partition("/")
    ends = values.split("-")
    if part == "?":
        return "; write * for any"
    if step.strip("0") == "" and step:
        return "; a step is 1 or more"
    if len(ends) == 2 and all(end and _is_valid(index, count, end) for end in ends):
        return f"; a range goes up: {ends[0]} comes after {ends[1]}"
    return ""


def parse_zone(name: object, field: str = "tz") -> str:
    """The name of a time zone that is known on this machine."""
    if not isinstance(name, str):
        raise InvalidTime(
            field, f"must be the name of a time zone such as 'Europe/Berlin', not {type(name).__name__}"
        )
    try:
        _zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidTime(
            field, f"{shown(name)} is not a time zone that is known here; one is 'Europe/Berlin'"
        ) from None
    return name


@lru_cache(maxsize=1024)  # cached: thousands of schedules share a few times
def next_match(cron: Cron, zone: str, after: Micros) -> Micros | None:
    """The first match after a moment; None if there is none before the year 2200."""
    here, expression = _zone(zone), _expression(cron.minutes)
    day = to_datetime(after).astimezone(here).date() - _DAY  # a skipped time of yesterday may run today
    while day < _LAST_DAY:
        if day.month not in expression.months:
            day = (day.replace(day=1) + 32 * _DAY).replace(day=1)
            continue
        if expression.match_day(day):
            for minute in _minutes(cron.minutes, day, here, after):
                for second in cron.seconds:
                    if (moment := minute + second * SECOND) > after:
                        return moment
        day += _DAY
    return None


def _minutes(text: str, day: date, here: ZoneInfo, after: Micros) -> Iterator[Micros]:
    """The matching minutes of a local day, in order; those long before `after` may be missing."""
    expression = _expression(text)
    midnight = datetime.combine(day, time(), here)
    offset = midnight.utcoffset() or timedelta()
    if offset == (midnight + _DAY).utcoffset() == midnight.replace(fold=1).utcoffset():
        # The clock is not changed on this day: no minute is skipped or repeated.
        begin = _micros(midnight.replace(tzinfo=UTC)) - offset // _MICROSECOND
        hours, minutes = sorted(expression.hours), sorted(expression.minutes)
        first = bisect_right(hours, (after - begin) // HOUR - 1)
        for full in (begin + hour * HOUR for hour in hours[first:]):
            for minute in minutes[bisect_right(minutes, (after - full) // MINUTE - 1) :]:
                yield full + minute * MINUTE
        return
    moments = _moved(text, day, here)
    yield from moments[bisect_left(moments, after - HOUR) :]


@lru_cache(maxsize=100)  # cached: up to 1,440 a day, and requests follow each other
def _moved(text: str, day: date, here: ZoneInfo) -> tuple[Micros, ...]:
    """The matching minutes of a day on which the clock changes, each tested by itself."""
    expression, midnight = _expression(text), datetime.combine(day, time(), here)
    walls = (midnight.replace(hour=hour, minute=minute) for hour in expression.hours for minute in expression.minutes)
    fixed = not _is_open(expression)
    return tuple(sorted({at for wall in walls for at in _moments(wall, here, fixed=fixed)}))


def _moments(wall: datetime, here: ZoneInfo, *, fixed: bool) -> list[Micros]:
    """The moments at which the local clock shows this time: none, one or two."""
    early, late = _micros(wall.replace(fold=0)), _micros(wall.replace(fold=1))
    if early == late:
        return [early]
    if early < late:
        return [early] if fixed else [early, late]
    return [_end_of_gap(late, early, here)] if fixed else []


def _end_of_gap(before: Micros, after: Micros, here: ZoneInfo) -> Micros:
    """The moment between two at which the clock changes."""
    offset = to_datetime(before).astimezone(here).utcoffset()
    while after - before > SECOND:
        middle = (before + after) // 2 // SECOND * SECOND
        if to_datetime(middle).astimezone(here).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def _is_open(expression: CronSim) -> bool:
    """Whether the hour or the minute begins with a star: then elapsed time counts, not local time."""
    return any(part.startswith("*") for part in expression.parts[1:3])


def _micros(moment: datetime) -> Micros:
    return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=1000)
def _expression(minutes: str) -> CronSim:
    return CronSim(minutes, _ANY_DAY)


@lru_cache(maxsize=1000)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
