"""Jobs: read, list, cancel, retry, run, change."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from windlass.client.verbs.find import find_id
from windlass.client.verbs.links import Links
from windlass.client.verbs.payloads import EarlierPayload
from windlass.core.hidden import reveal
from windlass.core.ids import is_id
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.core.why.explain import Why
from windlass.errors import ChangedSince, JobNotFound
from windlass.observe.tracing import trace_of
from windlass.server.api.job_list import JobQuery, find_jobs
from windlass.server.decode import Payload, parse_object
from windlass.server.operation import Answer, Call, Caller, Operation, etag, reads
from windlass.store.records import JobFilter

T = TypeVar("T")

MAX_CHECKS = 10
"""How often a job that keeps changing is read again."""
SECRET = ("payload", "result", "logs", "meta", "progress.note")


class JobRecord(Job, frozen=True, kw_only=True):
    """A job. Without the scope `payloads`, its contents are null and named in `hidden`; errors are not contents."""

    hidden: tuple[str, ...] = ()
    trace: str | None = None
    """The trace that it belongs to (W3C Trace Context)."""


class RetryRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A new payload for the job; the old one is kept."""

    payload: Payload | UnsetType = UNSET


class PayloadList(msgspec.Struct):
    """Payloads that a job had before operators changed them, the newest first."""

    payloads: list[EarlierPayload]


class JobList(msgspec.Struct):
    """One page, newest first; only `next_cursor: null` means the end."""

    jobs: list[JobRecord]
    next_cursor: str | None
    searched_since: datetime | None = None
    """If no index covers the search and it ended before a full page: from which moment on jobs were searched."""


class JobPatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Changes of a waiting job; of a dead one, only `payload`."""

    priority: int | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    delay: float | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET


class DeleteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`purge` deletes a finished job; otherwise the job is cancelled."""

    purge: bool = False
    reason: str = "cancelled by an operator"


class GetQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without `fetch`, a payload or result in the blob store is not read."""

    fetch: bool = True


class LinksQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many links before the job, and after it."""

    limit: int = 100


class FindQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first or last characters of an id."""

    part: str


class FoundId(msgspec.Struct):
    """The id of the only job that matches."""

    id: str


async def list_jobs(call: Call) -> Answer:
    """Jobs, newest first. What no index covers is searched in the newest 100,000, for up to a second."""
    found = await find_jobs(call, call.query)
    records = [_record(call.caller, job) for job in found.jobs]
    return Answer(JobList(records, found.next_cursor, found.searched_since))


async def get_job(call: Call) -> Answer:
    """A job in any status: result or error, attempts, progress, log lines."""
    job = await visible_job(call, fetch=call.query.fetch and call.caller.sees_payloads)
    return Answer(_record(call.caller, job), headers={"etag": etag(job.version)})


async def find_job(call: Call) -> Answer:
    """The id with this prefix, or else suffix; suffixes are searched among the newest jobs."""
    operator, rights = (await call.app._ready()).operator, call.caller.rights
    within = JobFilter(queues=tuple(sorted(rights.queues)), types=tuple(sorted(rights.types)))
    return Answer(FoundId(await find_id(operator, call.query.part, within)))


async def explain_job(call: Call) -> Answer:
    """Why a job does not run, and when it may."""
    job = await visible_job(call)
    sees = call.caller.sees_job if call.caller.rights.is_limited else None
    return Answer(await call.app.jobs.awhy(job.id, sees=sees, notes=call.caller.sees_payloads))


async def list_links(call: Call) -> Answer:
    """The chain of a job, in order."""
    job = await visible_job(call)
    found = await call.app.jobs.alinks(job.id, limit=call.query.limit)
    if not all(map(call.caller.sees_job, found.jobs)):
        found = Links(jobs=(job,), number=1, begins=False, ends=False)
    return Answer(msgspec.structs.replace(found, jobs=tuple(_record(call.caller, each) for each in found.jobs)))


async def cancel_job(call: Call) -> Answer:
    """Cancel a waiting job, ask a running one to stop; with `purge`, delete a finished one."""
    jobs = call.app.jobs
    if call.query.purge:
        await _apply(call, lambda job, version: jobs.adelete(job.id, version=version))
        return Answer(None, 204)
    after = await _apply(call, lambda job, version: jobs.acancel(job.id, call.query.reason, version=version))
    return _changed(call, after, 202 if after.status is Status.RUNNING else 200)


async def retry_job(call: Call) -> Answer:
    """Run a dead, cancelled, completed or failed job again, with a new budget of attempts."""

    async def retry(job: Job, version: str | None) -> Job:
        payload = None if call.body.payload is UNSET else await _edited(call, job.id, call.body.payload)
        return await call.app.jobs.aretry(job.id, payload=payload, version=version)

    return _changed(call, await _apply(call, retry))


async def list_payloads(call: Call) -> Answer:
    """The payloads that a job had before operators changed them."""
    call.caller.need(Scope.PAYLOADS)
    found = await call.app.jobs.aearlier_payloads((await visible_job(call)).id)
    seen = [msgspec.structs.replace(each, payload=call.caller.shown(each.payload)) for each in found]
    return Answer(PayloadList(seen))


async def _edited(call: Call, id_: str, text: msgspec.Raw) -> dict[str, Any]:
    """A new payload, in which hidden fields that still say `[hidden]` keep their stored values."""
    payload = parse_object(text)
    if not call.caller.policy.hidden:
        return payload
    stored = (await call.app.jobs.aget(id_)).payload
    return reveal(payload, stored, call.caller.policy.hidden)  # type: ignore[no-any-return]


async def run_job(call: Call) -> Answer:
    """Run a scheduled or failed job now."""
    return _changed(call, await _apply(call, lambda job, version: call.app.jobs.arun_now(job.id, version=version)))


async def change_job(call: Call) -> Answer:
    """Change a waiting job, or the payload of a dead one; it is checked by the task's schema if the server has it."""
    given = msgspec.structs.asdict(call.body)
    changes = {name: value for name, value in given.items() if value is not UNSET}

    async def change(job: Job, version: str | None) -> Job:
        if "queue" in changes:
            call.caller.need_queue(changes["queue"], job.type)
        edited = {"payload": await _edited(call, job.id, changes["payload"])} if "payload" in changes else {}
        return await call.app.jobs.achange(job.id, **{**changes, **edited}, version=version)

    return _changed(call, await _apply(call, change))


async def visible_job(call: Call, *, fetch: bool = False) -> Job:
    """The job of the path; JobNotFound if it is outside the token's limits."""
    id_ = call.path["id"].lower()
    if not is_id(id_):
        raise JobNotFound(id_[:40])
    job = await call.app.jobs.aget(id_, fetch=fetch)
    if not call.caller.sees_job(job):
        raise JobNotFound(id_)
    return job


async def _apply(call: Call, change: Callable[[Job, str | None], Awaitable[T]]) -> T:
    """Change the job of the path, at the version of If-Match.

    For a limited token the change requires the version whose limits were checked: a job that has changed since may be
    in another queue, and is checked again.
    """
    for is_last in (False,) * MAX_CHECKS + (True,):
        job = await visible_job(call)
        version = call.expected(job.version, f"job {job.id}")
        checked = job.version if call.caller.rights.is_limited else None
        try:
            return await change(job, version or checked)
        except ChangedSince:
            if version is not None or is_last:
                raise
    raise AssertionError


def _changed(call: Call, job: Job, status: int = 200) -> Answer:
    return Answer(_record(call.caller, job), status, {"etag": etag(job.version)})


def _record(caller: Caller, job: Job) -> JobRecord:
    shown = job if caller.sees_payloads else job.without_note()
    fields = {name: getattr(shown, name) for name in job.__struct_fields__}
    fields |= {name: caller.shown(getattr(job, name)) for name in ("payload", "result", "meta")}
    fields["trace"] = trace_of(job.meta)
    return JobRecord(**fields) if caller.sees_payloads else JobRecord(**{**fields, "logs": ()}, hidden=SECRET)


def _change(method: str, path: str, handler: Any, summary: str, **more: Any) -> Operation:
    return Operation(
        method=method,
        path=_PATH + path,
        scope=Scope.OPERATE,
        handler=handler,
        summary=summary,
        headers=("If-Match",),
        **{"answers": {200: JobRecord}, **more},
    )


_PATH = "/jobs/{id}"
_DELETED = {200: JobRecord, 202: JobRecord, 204: None}
OPERATIONS = (
    reads("/jobs", list_jobs, "List jobs, newest first", JobList, JobQuery),
    reads("/jobs/find", find_job, "Find a job by a part of its id", FoundId, FindQuery),
    reads(_PATH, get_job, "Read a job", JobRecord, GetQuery),
    reads(f"{_PATH}/why", explain_job, "Why a job does not run", Why),
    reads(f"{_PATH}/links", list_links, "The chain of a job", Links, LinksQuery),
    reads(f"{_PATH}/payloads", list_payloads, "Payloads that a job had before operators changed them", PayloadList),
    _change("DELETE", "", cancel_job, "Cancel a job, or delete a finished one", query=DeleteQuery, answers=_DELETED),
    _change("PATCH", "", change_job, "Change a waiting job", body=JobPatch),
    _change("POST", "/retry", retry_job, "Run a finished or failed job again", body=RetryRequest, optional_body=True),
    _change("POST", "/run", run_job, "Run a scheduled or failed job now"),
)
