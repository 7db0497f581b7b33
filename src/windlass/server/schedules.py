"""Schedules: read, add, change, pause, resume, run, remove."""

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from windlass.core.codec import readable
from windlass.core.hidden import reveal
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND
from windlass.core.names import check_name
from windlass.core.schedules.schedule import Schedule, ScheduleRules, ScheduleSettings
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption, ScheduleNotFound
from windlass.server.enqueue import JobReceipt, Payload, check_limits, make_job, parse_object
from windlass.server.operation import Answer, Call, Caller, Operation, etag

UPCOMING = 5


class ScheduleSettingsRecord(msgspec.Struct, kw_only=True):
    """Settings of a schedule and the job of its ticks; lengths are seconds; null: not set."""

    type: str | None = None
    queue: str | None = None
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


class Times(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """When and how a schedule fires; lengths are seconds or text such as "5m"."""

    cron: str | UnsetType = UNSET
    every: float | str | UnsetType = UNSET
    tz: str | UnsetType = UNSET
    catch_up: Literal["one", "all", "none"] | UnsetType = UNSET
    overlap: bool | UnsetType = UNSET
    jitter: float | str | UnsetType = UNSET

    @property
    def given(self) -> dict[str, Any]:
        """The options that are set."""
        found = {name: getattr(self, name) for name in Times.__struct_fields__}
        return {name: value for name, value in found.items() if value is not UNSET}


class NewSchedule(Times, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A new schedule and the job that each tick enqueues."""

    name: str
    type: str
    payload: Payload | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET


class SchedulePatch(Times, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Changes of a schedule; `paused` stops and resumes it, `reset` undoes changes by name."""

    paused: bool | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET
    reset: list[str] = []


async def list_schedules(call: Call) -> Answer:
    """All schedules that the token covers."""
    found = await call.app.schedules.alist()
    return Answer(ScheduleList([_record(call.caller, each) for each in found if _is_covered(call.caller, each)]))


async def get_schedule(call: Call) -> Answer:
    """One schedule."""
    return _answer(call, await _schedule(call))


async def add_schedule(call: Call) -> Answer:
    """A new schedule."""
    request: NewSchedule = call.body
    check_limits(call, request.type, request.queue)
    options = {name: value for name in ("queue", "priority") if (value := getattr(request, name)) is not UNSET}
    job = make_job(call.app, request.type, parse_object(request.payload), options)
    call.caller.need_queue(job.queue, job.type)
    name = check_name(request.name, "name")
    added = await call.app.schedules.aadd(name, job, **request.given)
    return msgspec.structs.replace(_answer(call, added), status=201)


async def change_schedule(call: Call) -> Answer:
    """Change a schedule; this overrides what the code declares."""
    schedule, version = await _matching_schedule(call)
    patch: SchedulePatch = call.body
    if not patch.given and not patch.reset and patch.paused is UNSET and patch.payload is UNSET:
        raise InvalidOption("body", f"nothing to change; there are {', '.join(SchedulePatch.__struct_fields__)}")
    job = None if patch.payload is UNSET else _with_payload(call, schedule, parse_object(patch.payload))
    paused = None if patch.paused is UNSET else patch.paused
    changed = await call.app.schedules.aset(
        schedule.name, job, reset=patch.reset, paused=paused, version=version, **patch.given
    )
    return _answer(call, changed)


async def remove_schedule(call: Call) -> Answer:
    """Remove a schedule; its jobs stay."""
    schedule, version = await _matching_schedule(call)
    await call.app.schedules.aremove(schedule.name, version=version)
    return Answer(None, 204)


async def run_schedule(call: Call) -> Answer:
    """Enqueue its job now."""
    schedule, version = await _matching_schedule(call)
    handle = await call.app.schedules.arun(schedule.name, version=version)
    receipt = JobReceipt(id=handle.id, status=Status.PENDING, existing=handle.existing)
    return Answer(receipt, 200 if handle.existing else 201)


async def _schedule(call: Call) -> Schedule:
    schedule = await call.app.schedules.aget(call.path["name"])
    if not _is_covered(call.caller, schedule):
        raise ScheduleNotFound(schedule.name)
    return schedule


async def _matching_schedule(call: Call) -> tuple[Schedule, str | None]:
    """The schedule of the path, and the version that a change of it must find (If-Match).

    For a limited token it is the one that its limits were checked for.
    """
    schedule = await _schedule(call)
    version = call.expected(schedule.version, f"schedule {schedule.name!r}")
    return schedule, schedule.version if version is None and call.caller.rights.is_limited else version


def _with_payload(call: Call, schedule: Schedule, payload: dict[str, Any]) -> NewJob:
    """The job of a schedule with other arguments; hidden ones that were left as they were shown stay."""
    app, job = call.app, schedule.rules.job
    whole = reveal(payload, readable(job.payload), call.caller.policy.hidden)
    return msgspec.structs.replace(job, payload=app.registry.check(job.type, whole, app.payload_limit))


def _is_covered(caller: Caller, schedule: Schedule) -> bool:
    """Whether the token covers its job, and the declared one, which a reset restores; without a job only if it has no
    limits.
    """
    found = [job for job in (schedule.changed.job, schedule.declared.job) if job is not None]
    covered = all(caller.rights.covers(job.queue, job.type) for job in found)
    return not caller.rights.is_limited or (bool(found) and covered)


def _answer(call: Call, schedule: Schedule) -> Answer:
    return Answer(_record(call.caller, schedule), headers={"etag": etag(schedule.version)})


def _record(caller: Caller, schedule: Schedule) -> ScheduleRecord:
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
    return ScheduleSettingsRecord(
        type=job.type if job else None,
        queue=job.queue if job else None,
        payload=caller.shown(readable(job.payload)) if job else None,
        cron=None if settings.cron is None else settings.cron.text,
        every=None if settings.every is None else settings.every / SECOND,
        tz=settings.tz,
        catch_up=settings.catch_up,
        overlap=settings.overlap,
        jitter=None if settings.jitter is None else settings.jitter / SECOND,
    )


_PATH = "/schedules/{name}"
OPERATIONS = (
    Operation(
        method="GET",
        path="/schedules",
        scope=Scope.READ,
        handler=list_schedules,
        summary="List schedules",
        answers={200: ScheduleList},
    ),
    Operation(
        method="POST",
        path="/schedules",
        scope=Scope.OPERATE,
        handler=add_schedule,
        summary="Add a schedule",
        body=NewSchedule,
        answers={201: ScheduleRecord},
    ),
    Operation(
        method="GET",
        path=_PATH,
        scope=Scope.READ,
        handler=get_schedule,
        summary="Read a schedule",
        answers={200: ScheduleRecord},
    ),
    Operation(
        method="PATCH",
        path=_PATH,
        scope=Scope.OPERATE,
        handler=change_schedule,
        summary="Change, pause or resume a schedule",
        body=SchedulePatch,
        answers={200: ScheduleRecord},
        headers=("If-Match",),
    ),
    Operation(
        method="DELETE",
        path=_PATH,
        scope=Scope.OPERATE,
        handler=remove_schedule,
        summary="Remove a schedule",
        answers={204: None},
        headers=("If-Match",),
    ),
    Operation(
        method="POST",
        path=f"{_PATH}/run",
        scope=Scope.OPERATE,
        handler=run_schedule,
        summary="Enqueue the job of a schedule now",
        answers={201: JobReceipt, 200: JobReceipt},
        headers=("If-Match",),
    ),
)
