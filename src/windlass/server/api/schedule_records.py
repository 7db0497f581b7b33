"""Schedules in requests and answers."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from windlass.core.codec import readable
from windlass.core.moments import SECOND
from windlass.core.schedules.schedule import Schedule, ScheduleOptions, ScheduleRules, ScheduleSettings
from windlass.server.api.job_options import OPTIONS, JobOptionFields, options_of
from windlass.server.decode import Payload
from windlass.server.operation import Caller

UPCOMING = 5


class ScheduleSettingsRecord(JobOptionFields, forbid_unknown_fields=False, kw_only=True, omit_defaults=False):
    """Settings of a schedule and the job of its ticks; lengths are seconds; null or missing: not set.

    A `timeout` of null is no limit. Meta is missing without the scope `payloads`.
    """

    type: str | None = None
    queue: str | None = None  # type: ignore[assignment]
    payload: Any = None
    """Null without the scope `payloads`."""
    cron: str | None = None
    every: float | None = None
    tz: str | None = None
    catch_up: str | None = None
    overlap: bool | None = None
    jitter: float | None = None


class ScheduleRecord(msgspec.Struct, kw_only=True):
    """A schedule: the effective settings, what the code declares, what an operator changed, and its ticks."""

    name: str
    version: str
    """Its ETag, without the quotes."""
    revision: int
    """Counts its changes."""
    in_words: str | None
    problem: str | None
    """Why it cannot fire."""
    paused: bool
    created_at: datetime
    last_at: datetime | None
    next_at: datetime | None
    upcoming: list[datetime]
    last_job: str | None
    missed: int
    skipped: int
    settings: ScheduleSettingsRecord | None
    """Null if it cannot fire."""
    declared: ScheduleSettingsRecord
    changed: ScheduleSettingsRecord


class ScheduleList(msgspec.Struct):
    """All schedules, by name."""

    schedules: list[ScheduleRecord]


class Times(JobOptionFields, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """When and how a schedule fires, and options of its job; lengths of times are seconds or text such as "5m"."""

    cron: str | UnsetType = UNSET
    every: float | str | UnsetType = UNSET
    tz: str | UnsetType = UNSET
    catch_up: Literal["one", "all", "none"] | UnsetType = UNSET
    overlap: bool | UnsetType = UNSET
    jitter: float | str | UnsetType = UNSET

    @property
    def given(self) -> dict[str, Any]:
        """The settings of the schedule that are given."""
        return _given(self, ScheduleOptions.__annotations__)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the job that are given."""
        return _given(self, OPTIONS)


def _given(request: Times, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(request, name)) is not UNSET}


class NewSchedule(Times, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A new schedule and the job that each tick enqueues."""

    name: str
    type: str
    payload: Payload | UnsetType = UNSET


class SchedulePatch(Times, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Changes of a schedule; `paused` stops and resumes it, `reset` undoes changes by name.

    With a `type` the schedule gets another job, with the options given here. `payload` alone keeps the other options.
    """

    paused: bool | UnsetType = UNSET
    type: str | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET
    reset: tuple[str, ...] = ()


def schedule_record(caller: Caller, schedule: Schedule) -> ScheduleRecord:
    """A schedule as the API returns it."""
    problem = schedule.problem
    rules = None if problem is not None else schedule.rules
    return ScheduleRecord(
        name=schedule.name,
        version=schedule.version,
        revision=schedule.revision,
        in_words=rules.in_words if rules else None,
        problem=problem,
        paused=schedule.paused,
        created_at=schedule.created_at,
        last_at=schedule.last_at,
        next_at=schedule.next_at,
        upcoming=list(schedule.upcoming(UPCOMING)) if rules else [],
        last_job=schedule.last_job,
        missed=schedule.missed,
        skipped=schedule.skipped,
        settings=_settings(caller, rules) if rules else None,
        declared=_settings(caller, schedule.declared),
        changed=_settings(caller, schedule.changed),
    )


def _settings(caller: Caller, settings: ScheduleSettings | ScheduleRules) -> ScheduleSettingsRecord:
    job = settings.job
    options = {} if job is None else options_of(job)
    if "meta" in options and (shown := caller.shown(options.pop("meta"))) is not None:
        options["meta"] = shown
    return ScheduleSettingsRecord(
        **options,
        type=job.type if job else None,
        payload=caller.shown(readable(job.payload)) if job else None,
        cron=None if settings.cron is None else settings.cron.text,
        every=None if settings.every is None else settings.every / SECOND,
        tz=settings.tz,
        catch_up=settings.catch_up,
        overlap=settings.overlap,
        jitter=None if settings.jitter is None else settings.jitter / SECOND,
    )
