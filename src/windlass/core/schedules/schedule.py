"""A schedule's settings: declared by code, changed by an operator, and the effective rules. Pure.

A schedule that was added at run time has an operator's settings only.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, TypedDict, Unpack

import msgspec

from windlass.core.codec import INLINE_LIMIT, size_of
from windlass.core.ids import JobId
from windlass.core.jobs.job import MAX_ATTEMPTS, MAX_COST, MAX_PER_KEY, MAX_PRIORITY, MIN_PRIORITY, NewJob
from windlass.core.moments import (
    DAY,
    MAX_TIME,
    SECOND,
    Duration,
    Micros,
    duration,
    show_duration,
    to_datetime,
    to_micros,
)
from windlass.core.names import MAX_CONCURRENCY_KEY_LENGTH, check_key
from windlass.core.schedules.cron import Cron, parse_cron, parse_zone
from windlass.core.schedules.ticks import CatchUp, Timetable
from windlass.core.suggest import unknown_option
from windlass.core.text import shown
from windlass.errors import ChangedSince, InvalidOption, InvalidTime, PayloadTooLarge, WindlassError

MIN_INTERVAL: Micros = SECOND
"""Between two ticks."""
MAX_JITTER: Micros = DAY
TIMES = ("cron", "every", "tz")
"""The settings that determine the ticks."""
NEEDS_TIMES = 'needs its times: cron="0 9 * * 1-5", or every=300'


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings as given; None means: not set here."""

    job: NewJob | None = None
    """The job that each tick enqueues; its id is empty."""
    cron: Cron | None = None
    every: Micros | None = None
    tz: str | None = None
    catch_up: CatchUp | None = None
    overlap: bool | None = None
    jitter: Micros | None = None


class ScheduleOptions(TypedDict, total=False):
    """The arguments of `app.schedule` and `app.schedules.set`."""

    cron: str | None
    every: Duration | None
    tz: str | None
    catch_up: Literal["one", "all", "none"] | None
    overlap: bool | None
    jitter: Duration | None


class ScheduleRules(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings of a schedule."""

    job: NewJob
    cron: Cron | None
    every: Micros | None
    tz: str
    catch_up: CatchUp
    overlap: bool
    jitter: Micros

    @property
    def in_words(self) -> str:
        """Its times in English."""
        if self.every is not None:
            return f"Every {show_duration(self.every)}"
        assert self.cron is not None
        return f"{self.cron.in_words} ({self.tz})"

    def timetable(self, anchor: Micros) -> Timetable:
        """Its ticks; an interval counts from the anchor."""
        return Timetable(cron=self.cron, zone=self.tz, every=self.every, anchor=anchor)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as users see it: an operator's changes override what the code declares."""

    name: str
    declared: ScheduleSettings = ScheduleSettings()
    changed: ScheduleSettings = ScheduleSettings()
    paused: bool = False
    created_at: datetime
    last_at: datetime | None = None
    """The last tick that was fired."""
    next_at: datetime | None = None
    """The next tick to fire; None: there is none."""
    last_job: JobId | None = None
    """The last job that was enqueued for a tick."""
    missed: int = 0
    """Ticks that passed while no coordinator ran, and were not made up."""
    skipped: int = 0
    """Ticks without a job: the one before had not ended (`overlap=False`), or the queue was closed."""
    revision: int = 0
    """Counts changes; a firing that was decided on an older revision is not applied."""

    @property
    def rules(self) -> ScheduleRules:
        """The effective settings."""
        return merge(self.declared, self.changed)

    @property
    def version(self) -> str:
        """Changes with every change of the schedule's settings or state, not with its ticks."""
        return f"{to_micros(self.created_at)}-{self.revision}"

    def check(self, version: str | None) -> None:
        """Raise ChangedSince if a version is given and the schedule has another one."""
        if version not in (None, self.version):
            raise ChangedSince(f"schedule {self.name!r}", self.version)

    @property
    def in_words(self) -> str:
        """Its times in English."""
        return self.rules.in_words

    @property
    def problem(self) -> str | None:
        """Why it cannot fire: its row cannot be read, or its time zone is unknown here. None if it can."""
        try:
            self.rules.timetable(to_micros(self.created_at)).next(to_micros(self.created_at))
        except (WindlassError, ValueError, LookupError, OSError) as error:
            return str(error) or type(error).__name__
        return None

    def upcoming(self, count: int) -> tuple[datetime, ...]:
        """Its next ticks, if nothing is changed; none while it is paused."""
        tick = None if self.next_at is None or self.paused else to_micros(self.next_at)
        table = self.rules.timetable(to_micros(self.created_at))
        found: list[datetime] = []
        while tick is not None and len(found) < count:
            found.append(to_datetime(tick))
            tick = table.next(tick)
        return tuple(found)


def merge(declared: ScheduleSettings, changed: ScheduleSettings) -> ScheduleRules:
    """The operator's settings over the code's, and both over the defaults. Raises InvalidOption if one is missing."""
    times = changed if changed.cron is not None or changed.every is not None else declared
    if times.cron is None and times.every is None:
        raise InvalidOption("schedule", NEEDS_TIMES)
    job = changed.job or declared.job
    if job is None:
        raise InvalidOption("schedule", "needs a job to enqueue: task.job(...)")
    check_template(job)
    held = {name: _effective(changed, declared, name) for name in ("catch_up", "overlap", "jitter")}
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
    """Check the options and return them as settings; None: not set."""
    unknown = [name for name in options if name not in _CHECKS]
    if unknown:
        raise unknown_option(unknown[0], _CHECKS, "a setting of a schedule")
    found = {name: _CHECKS[name](value) for name, value in options.items() if value is not None}
    if {"cron", "every"} <= found.keys():
        raise InvalidOption("every", "cannot be given together with cron")
    if {"tz", "every"} <= found.keys():
        raise InvalidOption("tz", "applies to cron, not to every")
    return ScheduleSettings(job=None if job is None else template(job), **found)


def amended(before: ScheduleSettings, added: ScheduleSettings) -> ScheduleSettings:
    """The operator's settings with the given ones added or replaced."""
    given = {name: value for name in added.__struct_fields__ if (value := getattr(added, name)) is not None}
    if given.keys() & {"cron", "every"}:
        given = {"cron": None, "every": None, **given}
    return msgspec.structs.replace(before, **given)


def without(before: ScheduleSettings, names: Iterable[str]) -> ScheduleSettings:
    """The operator's settings without the named ones; without names, no settings."""
    chosen = tuple(names) or ScheduleSettings.__struct_fields__
    for name in chosen:
        if name not in ScheduleSettings.__struct_fields__:
            existing = ", ".join(ScheduleSettings.__struct_fields__)
            raise InvalidOption("setting", f"{shown(name)} is not a setting of a schedule; there are {existing}")
    return msgspec.structs.replace(before, **dict.fromkeys(chosen))


def _effective(changed: ScheduleSettings, declared: ScheduleSettings, name: str) -> Any:
    value = getattr(changed, name)
    return getattr(declared, name) if value is None else value


def _every(value: Any) -> Micros:
    micros = duration(value, "every")
    if micros < MIN_INTERVAL:
        raise InvalidTime("every", f"must be at least {show_duration(MIN_INTERVAL)}, not {shown(value)}")
    return micros


def _jitter(value: Any) -> Micros:
    micros = duration(value, "jitter")
    if micros > MAX_JITTER:
        raise InvalidTime("jitter", f"must be at most {show_duration(MAX_JITTER)}, not {shown(value)}")
    return micros


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


_OF_ONE_JOB = {
    "run_at": "the schedule determines when it runs",
    "delay": "the schedule determines when it runs; jitter= spreads the jobs",
    "idempotency_key": "each job of a schedule gets its own key; overlap=False lets only one run at a time",
    "expires_at": "give a length: expires=600",
    "parent": "jobs of a schedule have no parent",
    "parents": "jobs of a schedule have no parents",
    "result_params": "PREVIOUS is for links of a chain",
}
_BOUNDS = {
    "priority": (MIN_PRIORITY, MAX_PRIORITY),
    "max_attempts": (1, MAX_ATTEMPTS),
    "key_limit": (1, MAX_PER_KEY),
    "rate_cost": (1, MAX_COST),
    "timeout": (0, MAX_TIME),
    "expires": (1, MAX_TIME),
}
_INDEXED = ("queue", "type", "tenant", "concurrency_key")
_of_one_job, _bounded, _indexed = attrgetter(*_OF_ONE_JOB), attrgetter(*_BOUNDS), attrgetter(*_INDEXED)


def template(job: object) -> NewJob:
    """A job given by the app, as a template."""
    if not isinstance(job, NewJob):
        raise InvalidOption("job", f"is not a job but {type(job).__name__}; make it with task.job(...)")
    fields = {name: getattr(job, name) for name in NewJob.__struct_fields__}
    made = NewJob(**{**fields, "id": "", "fresh": ""})
    check_template(made)
    return made


def check_template(job: NewJob) -> None:
    """Refuse a template that could not be enqueued."""
    for name, value in zip(_OF_ONE_JOB, _of_one_job(job), strict=True):
        if value not in (None, 0, ()):
            raise InvalidOption(
                "expires" if name == "expires_at" else name, f"belongs to one job; {_OF_ONE_JOB[name]}"
            )
    if size_of(job.payload) > INLINE_LIMIT:
        raise PayloadTooLarge(
            "payload",
            f"of a schedule's job is {size_of(job.payload):,} bytes, the limit is {INLINE_LIMIT:,}",
            limit=INLINE_LIMIT,
        )
    for value, (name, (least, most)) in zip(_bounded(job), _BOUNDS.items(), strict=True):
        if value is not None and not least <= value <= most:
            raise InvalidOption(name, f"must be a whole number from {least} to {most}, not {value}")
    for name, text in zip(_INDEXED, _indexed(job), strict=True):
        if text is not None:
            check_key(text, name, MAX_CONCURRENCY_KEY_LENGTH)
    for name, text in (("payload", job.payload), ("meta", job.meta), ("flow", job.flow)):
        if text is not None and "\x00" in text:
            raise InvalidOption(name, "must be text without NUL")
