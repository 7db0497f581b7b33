"""Schedules: read, add, change, pause, resume, run, remove."""

import msgspec
from msgspec import UNSET

from windlass.core.codec import readable
from windlass.core.hidden import reveal
from windlass.core.jobs.job import NewJob
from windlass.core.names import check_name
from windlass.core.schedules.schedule import Schedule
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption, ScheduleNotFound
from windlass.server.api.enqueue import JobReceipt, check_limits, make_job
from windlass.server.api.job_options import options_of
from windlass.server.api.schedule_records import (
    NewSchedule,
    ScheduleList,
    SchedulePatch,
    ScheduleRecord,
    schedule_record,
)
from windlass.server.decode import parse_object
from windlass.server.operation import Answer, Call, Caller, Operation, etag, reads


async def list_schedules(call: Call) -> Answer:
    """All schedules that the token covers."""
    found = await call.app.schedules.alist()
    return Answer(
        ScheduleList([schedule_record(call.caller, each) for each in found if _is_covered(call.caller, each)])
    )


async def get_schedule(call: Call) -> Answer:
    """One schedule."""
    return _answer(call, await _schedule(call))


async def add_schedule(call: Call) -> Answer:
    """A new schedule."""
    request: NewSchedule = call.body
    job = _new_job(call, request.type, None)
    name = check_name(request.name, "schedule")
    added = await call.app.schedules.aadd(name, job, **request.given)
    return msgspec.structs.replace(_answer(call, added), status=201)


async def change_schedule(call: Call) -> Answer:
    """Change a schedule; this overrides what the code declares."""
    schedule, version = await _matching_schedule(call)
    patch: SchedulePatch = call.body
    if patch == SchedulePatch():
        raise InvalidOption("body", f"nothing to change; there are {', '.join(SchedulePatch.__struct_fields__)}")
    job = _changed_job(call, schedule)
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
    """The schedule of the path, and the version that a change requires (If-Match).

    For a limited token it is the version whose limits were checked.
    """
    schedule = await _schedule(call)
    version = call.expected(schedule.version, f"schedule {schedule.name!r}")
    return schedule, schedule.version if version is None and call.caller.rights.is_limited else version


def _changed_job(call: Call, schedule: Schedule) -> NewJob | None:
    """The changed job of a schedule; hidden fields that still say `[hidden]` keep their values. None: no change."""
    patch: SchedulePatch = call.body
    if patch.type is UNSET and patch.options:
        name = next(iter(patch.options))
        raise InvalidOption(name, "is an option of another job: give its type too, and all its options")
    if patch.type is UNSET and patch.payload is UNSET:
        return None
    app, hidden = call.app, call.caller.policy.hidden
    if patch.type is not UNSET:
        before = schedule.changed.job or schedule.declared.job
        return _new_job(call, patch.type, before if before is not None and before.type == patch.type else None)
    job = schedule.rules.job
    whole = reveal(parse_object(patch.payload), readable(job.payload), hidden)
    return msgspec.structs.replace(job, payload=app.registry.check(job.type, whole, app.payload_limit))


def _new_job(call: Call, type_: str, before: NewJob | None) -> NewJob:
    """A job with the options of the request, within the token's limits; `before` has the values of hidden fields."""
    check_limits(call, type_, call.body.queue)
    hidden, options = call.caller.policy.hidden, call.body.options
    payload = reveal(parse_object(call.body.payload), None if before is None else readable(before.payload), hidden)
    if "meta" in options:
        options["meta"] = reveal(options["meta"], {} if before is None else options_of(before).get("meta"), hidden)
    job = make_job(call.app, type_, payload, options)
    call.caller.need_queue(job.queue, job.type)
    return job


def _is_covered(caller: Caller, schedule: Schedule) -> bool:
    """Whether the token covers the job, and the declared one, which a reset restores. A limited token covers no
    schedule without a job.
    """
    found = [job for job in (schedule.changed.job, schedule.declared.job) if job is not None]
    covered = all(caller.rights.covers(job.queue, job.type) for job in found)
    return not caller.rights.is_limited or (bool(found) and covered)


def _answer(call: Call, schedule: Schedule) -> Answer:
    return Answer(schedule_record(call.caller, schedule), headers={"etag": etag(schedule.version)})


_PATH = "/schedules/{name}"
OPERATIONS = (
    reads("/schedules", list_schedules, "List schedules", ScheduleList),
    Operation(
        method="POST",
        path="/schedules",
        scope=Scope.OPERATE,
        handler=add_schedule,
        summary="Add a schedule",
        body=NewSchedule,
        answers={201: ScheduleRecord},
    ),
    reads(_PATH, get_schedule, "Read a schedule", ScheduleRecord),
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
