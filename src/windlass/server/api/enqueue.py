"""POST /jobs and POST /jobs/bulk."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from windlass.client.app import App
from windlass.client.handle import Handle
from windlass.client.runtime.process_id import this_process
from windlass.client.tasks.options import check_options, job_fields
from windlass.core.hidden import reveal
from windlass.core.ids import new_id
from windlass.core.jobs.job import DEFAULT_QUEUE, Job, NewJob
from windlass.core.moments import to_datetime
from windlass.core.names import check_name, with_field
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.errors import (
    EnqueueUnknown,
    InvalidInput,
    InvalidOption,
    InvalidPayload,
    JobNotFound,
    KeyConflict,
    StoreUnavailable,
    UnknownTask,
)
from windlass.server.api.job_options import JobOptionFields
from windlass.server.api.requests import IDEMPOTENCY_KEY, once
from windlass.server.decode import Payload, parse_object
from windlass.server.operation import Answer, Call, Operation, OutsideLimits
from windlass.server.problem import Refused

MAX_BULK = 1_000
MAX_BULK_BODY = 16 * 1024 * 1024
MAX_JOB_BODY = 16 * 1024 * 1024
"""Bounds the memory; a payload over the app's limit is refused with that limit."""


class JobRequest(JobOptionFields, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A job to be enqueued. Lengths of time are seconds."""

    type: str
    payload: Payload | UnsetType = UNSET
    id: str | UnsetType = UNSET
    delay: float | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET
    idempotency_window: float | UnsetType = UNSET
    on_conflict: Literal["existing", "replace", "raise"] | UnsetType = UNSET
    parent: str | UnsetType = UNSET


class BulkRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to be enqueued, all or none."""

    jobs: list[JobRequest]


class JobReceipt(msgspec.Struct, kw_only=True):
    """The stored job: new, or the existing one under its id or idempotency key."""

    id: str
    status: Status
    existing: bool
    estimated_start_at: datetime | None = None
    """Null: not known."""


class BulkReceipt(msgspec.Struct):
    """The stored jobs, in the order of the request."""

    jobs: list[JobReceipt]


async def enqueue_job(call: Call) -> Answer:
    """Store the job; the answer comes when it is durable."""

    async def enqueue(ids: Sequence[str | None]) -> Answer:
        job = _new_job(call, call.body, "", ids[0])
        (handle,) = await _enqueue(call, [job])
        receipt = await _receipt(call, job, handle)
        return Answer(receipt, 200 if receipt.existing else 201, {"location": f"/api/v1/jobs/{receipt.id}"})

    return await once(call, 1, enqueue)


async def enqueue_bulk(call: Call) -> Answer:
    """Store all jobs, or none."""
    jobs = call.body.jobs
    if not jobs:
        raise InvalidOption("jobs", f"must have 1 to {MAX_BULK} jobs")
    if len(jobs) > MAX_BULK:
        raise Refused(413, "too_many_jobs", f"{len(jobs):,} jobs; at most {MAX_BULK:,} in one call", limit=MAX_BULK)

    async def enqueue(ids: Sequence[str | None]) -> Answer:
        made = [_new_job(call, job, f"jobs[{i}].", ids[i]) for i, job in enumerate(jobs)]
        handles = await _enqueue(call, made)
        receipts = [_plain_receipt(job, handle) for job, handle in zip(made, handles, strict=True)]
        await _hide_others(call, made, receipts)
        return Answer(BulkReceipt(receipts), 201)

    return await once(call, len(jobs), enqueue)


async def _enqueue(call: Call, jobs: list[NewJob]) -> Sequence[Handle[Any]]:
    """Store the jobs. A key conflict names the other job only to a token that covers it."""
    if call.caller.rights.is_limited:
        await _check_parents(call, jobs)
    try:
        return await call.app.aenqueue_many(jobs)
    except KeyConflict as error:
        _check_seen(call, (await _read(call, [error.job_id]))[0])
        raise


async def _hide_others(call: Call, jobs: list[NewJob], receipts: list[JobReceipt]) -> None:
    """Replace the ids of existing jobs outside the token's limits by those of the jobs that were not stored."""
    existing = [i for i, each in enumerate(receipts) if each.existing] if call.caller.rights.is_limited else []
    found = await _read_stored(call, jobs, [receipts[i].id for i in existing]) if existing else ()
    for i, job in zip(existing, found, strict=True):
        if job is not None and not call.caller.sees_job(job):
            receipts[i].id = jobs[i].id


def _check_seen(call: Call, existing: Job | None) -> None:
    """Refuse if an existing job is outside the token's limits; None: it is not kept any more."""
    if existing is not None and not call.caller.sees_job(existing):
        raise OutsideLimits("another job has this id or key, and it is outside this token's limits")


async def _read(call: Call, ids: list[str]) -> Sequence[Job | None]:
    return await (await call.app._ready()).operator.get(ids)


async def _read_stored(call: Call, jobs: list[NewJob], ids: list[str]) -> Sequence[Job | None]:
    """Read jobs after the enqueue of `jobs`. An outage here must not be answered as if nothing were stored."""
    try:
        return await _read(call, ids)
    except StoreUnavailable as error:
        # Not `ids`: an existing job may be outside the token's limits.
        raise EnqueueUnknown([job.id for job in jobs], str(error)) from error


def _new_job(call: Call, request: JobRequest, prefix: str, id_: str | None) -> NewJob:
    """A job with this id, unless the request names one; None: a new one."""
    check_limits(call, request.type, request.queue)
    options = _given(request)
    if id_ is not None:
        options.setdefault("id", id_)
    try:
        given = reveal(parse_object(request.payload), None, call.caller.policy.hidden)
        _check_meta(call, options)
        job = make_job(call.app, request.type, given, options)
    except InvalidInput as error:
        raise with_field(error, f"{prefix}{error.field}") from None
    call.caller.need_queue(job.queue, job.type)
    if job.on_conflict == "replace" and call.caller.rights.types:
        raise OutsideLimits("this token is limited to types, and a job of another type may hold the key")
    return job


def _check_meta(call: Call, options: dict[str, Any]) -> None:
    """Refuse `[hidden]` in a hidden field of `meta`: it is what a copied job shows, not a value."""
    try:
        reveal(options.get("meta"), None, call.caller.policy.hidden)
    except InvalidPayload as error:
        raise InvalidOption(f"meta.{error.field}", error.problem) from None


def check_limits(call: Call, type_: str, queue: str | UnsetType) -> None:
    """Refuse what is outside the token's limits before the arguments are checked: their errors describe the task."""
    registry = call.app.registry
    known = registry.get(type_) if type_ in registry else None
    usual = DEFAULT_QUEUE if known is None else str(known.defaults.get("queue", DEFAULT_QUEUE))
    what = None
    if not call.caller.rights.covers_type(type_ if known is None else known.type):
        what = f"type {type_!r}"
    elif not call.caller.rights.covers_queue(usual if queue is UNSET else queue):
        what = f"the queue of type {type_!r}" if queue is UNSET else f"queue {queue!r}"
    if what is not None:
        raise OutsideLimits(f"this token is limited, and {what} is not among what it may use")


def _given(request: JobRequest) -> dict[str, Any]:
    """The options that a request names."""
    values = zip(JobRequest.__struct_fields__, msgspec.structs.astuple(request), strict=True)
    given = {name: value for name, value in values if value is not UNSET}
    del given["type"]
    given.pop("payload", None)
    return given


async def _check_parents(call: Call, jobs: list[NewJob]) -> None:
    """A parent outside the token's limits is unknown to it."""
    for parent in dict.fromkeys(job.parent for job in jobs if job.parent is not None):
        if not call.caller.sees_job(await call.app.jobs.aget(parent, fetch=False)):
            raise JobNotFound(parent)


def make_job(app: App, type_: str, arguments: dict[str, Any], options: dict[str, Any]) -> NewJob:
    """A job by type; an app that has tasks checks the arguments, and refuses types that it does not know."""
    check_name(type_, "type")
    if app.tasks:
        known = app.registry.get(type_).type
        if known not in app.tasks:
            raise UnknownTask(type_, "; this one is of Windlass itself")
        return app.tasks[known].using(**options)._job_of(arguments)
    text = app.registry.check(type_, arguments, app.payload_limit)
    if not options:
        return NewJob(id=new_id(), type=type_, payload=text, fresh=this_process())
    fields = check_options(options)
    fresh = "" if "id" in fields else this_process()
    return NewJob(type=type_, payload=text, fresh=fresh, **job_fields({"id": new_id(), **fields}))


async def _receipt(call: Call, job: NewJob, handle: Handle[Any]) -> JobReceipt:
    receipt = _plain_receipt(job, handle)
    if handle.existing or job.concurrency_key is not None:
        (found,) = await _read_stored(call, [job], [handle.id])
        if handle.existing:
            _check_seen(call, found)
        receipt.status = receipt.status if found is None else found.status
    if receipt.status in (Status.PENDING, Status.SCHEDULED, Status.BLOCKED) and receipt.estimated_start_at is None:
        receipt.estimated_start_at = await call.state.estimates.start_of(job, handle.id)
    return receipt


def _plain_receipt(job: NewJob, handle: Handle[Any]) -> JobReceipt:
    """The receipt without a read of the store: an existing job may be in another status."""
    later = bool(job.delay) or job.run_at is not None
    status = Status.SCHEDULED if later else Status.BLOCKED if job.parents else Status.PENDING
    starts = to_datetime(job.run_at) if job.run_at is not None and not handle.existing else None
    return JobReceipt(id=handle.id, status=status, existing=handle.existing, estimated_start_at=starts)


OPERATIONS = (
    Operation(
        method="POST",
        path="/jobs",
        scope=Scope.ENQUEUE,
        handler=enqueue_job,
        summary="Enqueue a job",
        body=JobRequest,
        max_body=MAX_JOB_BODY,
        answers={201: JobReceipt, 200: JobReceipt},
        headers=(IDEMPOTENCY_KEY,),
    ),
    Operation(
        method="POST",
        path="/jobs/bulk",
        scope=Scope.ENQUEUE,
        handler=enqueue_bulk,
        summary="Enqueue up to 1,000 jobs, all or none",
        body=BulkRequest,
        max_body=MAX_BULK_BODY,
        answers={201: BulkReceipt},
        headers=(IDEMPOTENCY_KEY,),
    ),
)
