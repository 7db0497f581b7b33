"""A schedule's settings: what the code declares, what an operator changed, and what holds. Pure.

Code declares a schedule, or somebody adds one at run time: then all that is said of it is an operator's change.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, Unpack

import msgspec

from windlass.core.cron import Cron, parse_cron, parse_zone
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.moments import DAY, SECOND, Micros, duration, parse_duration, show_duration, to_datetime, to_micros
from windlass.core.template import check_template, template
from windlass.core.text import shown
from windlass.core.ticks import CatchUp, Timetable
from windlass.errors import InvalidOption, InvalidTime, WindlassError

SHORTEST: Micros = SECOND
"""Between two ticks."""
MOST_JITTER: Micros = DAY
TIMES = ("cron", "every", "tz")
"""What the ticks follow from."""
LEAST_SAID = 'needs its times: cron="0 9 * * 1-5", or every=300'


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that somebody gave; None means: not said here."""

    job: NewJob | None = None
    """What each tick hands in; its id is empty."""
    cron: Cron | None = None
    every: Micros | None = None
    tz: str | None = None
    catch_up: CatchUp | None = None
    overlap: bool | None = None
    jitter: Micros | None = None


class ScheduleOptions(TypedDict, total=False):
    """What `app.schedule` and `app.schedules.set` take. Lengths are seconds, a timedelta, or text such as "5m"."""

    cron: str | None
    every: float | timedelta | str | None
    tz: str | None
    catch_up: Literal["one", "all", "none"] | None
    overlap: bool | None
    jitter: float | timedelta | str | None


class ScheduleRules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that hold for a schedule."""

    job: NewJob
    cron: Cron | None
    every: Micros | None
    tz: str
    catch_up: CatchUp
    overlap: bool
    jitter: Micros

    @property
    def in_words(self) -> str:
        """When it comes, as people say it."""
        if self.every is not None:
            return f"Every {show_duration(self.every)}"
        assert self.cron is not None
        return f"{self.cron.in_words} ({self.tz})"

    def timetable(self, anchor: Micros) -> Timetable:
        """Its ticks; an interval is counted from the anchor."""
        return Timetable(cron=self.cron, zone=self.tz, every=self.every, anchor=anchor)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as people see it: the operator's change stands beside what the code declares, and wins."""

    name: str
    declared: ScheduleSettings = ScheduleSettings()
    changed: ScheduleSettings = ScheduleSettings()
    paused: bool = False
    created_at: datetime
    last_at: datetime | None = None
    """The last tick that was seen to."""
    next_at: datetime | None = None
    """The first tick that nobody has seen to; None: there is none to come."""
    last_job: JobId | None = None
    """The last job that was handed in for a tick."""
    missed: int = 0
    """Ticks that nobody was there for, and that were not made up."""
    skipped: int = 0
    """Ticks whose job was not handed in: another ran still (`overlap=False`), or the queue was closed."""
    revision: int = 0
    """Counts changes: what was decided on an older one is not done."""

    @property
    def rules(self) -> ScheduleRules:
        """What holds now."""
        return merge(self.declared, self.changed)

    @property
    def in_words(self) -> str:
        """When it comes, as people say it."""
        return self.rules.in_words

    @property
    def problem(self) -> str | None:
        """Why it can hand nothing in: it cannot be read, or its zone is not known here. None: it can."""
        try:
            self.rules.timetable(to_micros(self.created_at)).next(to_micros(self.created_at))
        except (WindlassError, ValueError, LookupError, OSError) as error:
            return str(error) or type(error).__name__
        return None

    def upcoming(self, count: int) -> tuple[datetime, ...]:
        """Its next ticks, if nothing is changed: none while it is paused."""
        tick = None if self.next_at is None or self.paused else to_micros(self.next_at)
        table = self.rules.timetable(to_micros(self.created_at))
        found: list[datetime] = []
        while tick is not None and len(found) < count:
            found.append(to_datetime(tick))
            tick = table.next(tick)
        return tuple(found)


def merge(declared: ScheduleSettings, changed: ScheduleSettings) -> ScheduleRules:
    """The operator's word over the code's, and both over the defaults. What is missing is an InvalidOption."""
    times = changed if changed.cron is not None or changed.every is not None else declared
    if times.cron is None and times.every is None:
        raise InvalidOption("schedule", LEAST_SAID)
    job = changed.job or declared.job
    if job is None:
        raise InvalidOption("schedule", "needs a job that it hands in: task.job(...)")
    check_template(job)
    held = {name: _said(changed, declared, name) for name in ("catch_up", "overlap", "jitter")}
    return ScheduleRules(
        job=job,
        cron=times.cron,
        every=times.every,
        tz=changed.tz or declared.tz or "UTC",
        catch_up=held["catch_up"] or CatchUp.ONE,
        overlap=held["overlap"] is not False,
        jitter=held["jitter"] or 0,
    )


def settings(job: NewJob | None = None, **options: Unpack[ScheduleOptions]) -> ScheduleSettings:
    """Settings as a program gives them, checked; None is: not said."""
    unknown = [name for name in options if name not in _CHECKS]
    if unknown:
        raise InvalidOption(unknown[0], f"is not a setting of a schedule; there are {', '.join(_CHECKS)}")
    found = {name: _CHECKS[name](value) for name, value in options.items() if value is not None}
    if {"cron", "every"} <= found.keys():
        raise InvalidOption("every", "cannot be given together with cron")
    if {"tz", "every"} <= found.keys():
        raise InvalidOption("tz", "says nothing of an interval; it is for cron")
    return ScheduleSettings(job=None if job is None else template(job), **found)


def amended(before: ScheduleSettings, said: ScheduleSettings) -> ScheduleSettings:
    """What an operator has said in all: what is said now replaces what was said of it before, the rest stays."""
    given = {name: value for name in said.__struct_fields__ if (value := getattr(said, name)) is not None}
    if given.keys() & {"cron", "every"}:
        given = {"cron": None, "every": None, **given}
    return msgspec.structs.replace(before, **given)


def without(before: ScheduleSettings, names: Iterable[str]) -> ScheduleSettings:
    """What an operator has said, but for these settings; without names: nothing."""
    chosen = tuple(names) or ScheduleSettings.__struct_fields__
    for name in chosen:
        if name not in ScheduleSettings.__struct_fields__:
            there = ", ".join(ScheduleSettings.__struct_fields__)
            raise InvalidOption("setting", f"{shown(name)} is none of a schedule; there are {there}")
    return msgspec.structs.replace(before, **dict.fromkeys(chosen))


def _said(changed: ScheduleSettings, declared: ScheduleSettings, name: str) -> Any:
    value = getattr(changed, name)
    return getattr(declared, name) if value is None else value


def _every(value: Any) -> Micros:
    micros = _length(value, "every")
    if micros < SHORTEST:
        raise InvalidTime("every", f"must be at least {show_duration(SHORTEST)}, not {shown(value)}")
    return micros


def _jitter(value: Any) -> Micros:
    micros = _length(value, "jitter")
    if micros > MOST_JITTER:
        raise InvalidTime("jitter", f"must be at most {show_duration(MOST_JITTER)}, not {shown(value)}")
    return micros


def _length(value: Any, field: str) -> Micros:
    return parse_duration(value, field) if isinstance(value, str) else duration(value, field)


def _catch_up(value: Any) -> CatchUp:
    if value not in tuple(CatchUp):
        raise InvalidOption("catch_up", f"must be one of {', '.join(CatchUp)}, not {shown(value)}")
    return CatchUp(value)


def _overlap(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidOption("overlap", f"must be True or False, not {shown(value)}")
    return value


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "cron": parse_cron,
    "every": _every,
    "tz": parse_zone,
    "catch_up": _catch_up,
    "overlap": _overlap,
    "jitter": _jitter,
}
