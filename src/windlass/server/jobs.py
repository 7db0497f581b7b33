"""Jobs: read, list, cancel, retry, run, change."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from windlass.client.verbs.links import Links
from windlass.client.verbs.payloads import EarlierPayload
from windlass.core.hidden import reveal
from windlass.core.ids import is_id
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.core.why.explain import Why
from windlass.errors import JobNotFound
from windlass.observe.tracing import trace_of
from windlass.server.cursor import make_cursor, read_cursor
from windlass.server.operation import Answer, Call, Caller, Operation, etag

MAX_PAGES = 10
"""Pages of the store that one list of a limited token reads."""
SECRET = ("payload", "result", "logs", "meta", "progress.note")


class JobRecord(Job, frozen=True, kw_only=True):
    """A job. Without the scope `payloads`, its contents are null and named in `hidden`; errors are not contents."""

    hidden: tuple[str, ...] = ()
    trace: str | None = None
    """The trace that it belongs to (W3C Trace Context)."""


class RetryRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Another payload for a dead or failed job; the old one is kept."""

    payload: dict[str, Any] | UnsetType = UNSET


class PayloadList(msgspec.Struct):
    """Payloads that a job had before operators changed them, the newest first."""

    payloads: list[EarlierPayload]


class CountQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter: every given field must match."""

    status: tuple[Status, ...] = ()
    type: str | None = None
    queue: str | None = None
    tenant: str | None = None
    tag: str | None = None
    parent: str | None = None
    schedule: str | None = None

    @property
    def wanted(self) -> dict[str, Any]:
        """The filter without the page."""
        return {name: value for name in CountQuery.__struct_fields__ if (value := getattr(self, name))}


class JobQuery(CountQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The filter of a list, and the page."""

    limit: int = 50
    cursor: str | None = None


class JobList(msgspec.Struct):
    """One page, newest first; only `next_cursor: null` means the end."""

    jobs: list[JobRecord]
    next_cursor: str | None


class JobPatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Changes of a waiting job."""

    priority: int | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    delay: float | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    payload: dict[str, Any] | UnsetType = UNSET


class DeleteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`purge` deletes a finished job; otherwise the job is cancelled."""

    purge: bool = False
    reason: str = "cancelled by an operator"


async def list_jobs(call: Call) -> Answer:
    """Jobs, newest first."""
    query: JobQuery = call.query
    wanted, rights = query.wanted, call.caller.rights
    for name, covers in (("queue", rights.covers_queue), ("type", rights.covers_type)):
        if name in wanted and not covers(wanted[name]):
            return Answer(JobList([], None))
    bound = {**wanted, "token": call.caller.id if rights.is_limited else ""}
    position = read_cursor(query.cursor, bound)
    found: list[Job] = []
    for _ in range(MAX_PAGES):
        page = await call.app.jobs.alist(**wanted, limit=query.limit - len(found), cursor=position)
        found += filter(call.caller.sees_job, page.items)
        position = page.next_cursor
        if position is None or len(found) >= query.limit or not rights.is_limited:
            break
    return Answer(JobList([_record(call.caller, job) for job in found], make_cursor(position, bound)))


async def get_job(call: Call) -> Answer:
    """A job in any status: result or error, attempts, progress, log lines."""
    job = await visible_job(call, fetch=call.caller.sees_payloads)
    return Answer(_record(call.caller, job), headers={"etag": etag(job.version)})


async def explain_job(call: Call) -> Answer:
    """Why a job does not run, and when it may."""
    job = await visible_job(call)
    sees = call.caller.sees_job if call.caller.rights.is_limited else None
    return Answer(await call.app.jobs.awhy(job.id, sees=sees, notes=call.caller.sees_payloads))


async def list_links(call: Call) -> Answer:
    """The chain of a job, in order."""
    job = await visible_job(call)
    found = await call.app.jobs.alinks(job.id)
    if not all(map(call.caller.sees_job, found.jobs)):
        found = Links(jobs=(job,), place=1, begins=False, ends=False)
    return Answer(msgspec.structs.replace(found, jobs=tuple(_record(call.caller, each) for each in found.jobs)))


async def cancel_job(call: Call) -> Answer:
    """Cancel a waiting job, ask a running one to stop; with `purge`, delete a finished one."""
    before, version = await _matching_job(call)
    if call.query.purge:
        await call.app.jobs.adelete(before.id, version=version)
        return Answer(None, 204)
    after = await call.app.jobs.acancel(before.id, call.query.reason, version=version)
    return _changed(call, after, 202 if after.status is Status.RUNNING else 200)


async def retry_job(call: Call) -> Answer:
    """Run a dead, cancelled, completed or failed job again, with a new budget of attempts."""
    job, version = await _matching_job(call)
    payload = None if call.body.payload is UNSET else await _edited(call, job.id, call.body.payload)
    return _changed(call, await call.app.jobs.aretry(job.id, payload=payload, version=version))


async def list_payloads(call: Call) -> Answer:
    """What a job was to do before operators changed it."""
    call.caller.need(Scope.PAYLOADS)
    found = await call.app.jobs.aearlier_payloads((await visible_job(call)).id)
    seen = [msgspec.structs.replace(each, payload=call.caller.shown(each.payload)) for each in found]
    return Answer(PayloadList(seen))


async def _edited(call: Call, id_: str, payload: dict[str, Any]) -> dict[str, Any]:
    """A new payload, in which hidden fields that were left as they were shown keep their stored values."""
    if not call.caller.policy.hidden:
        return payload
    stored = (await call.app.jobs.aget(id_)).payload
    return reveal(payload, stored, call.caller.policy.hidden)  # type: ignore[no-any-return]


async def run_job(call: Call) -> Answer:
    """Run a scheduled or failed job now."""
    job, version = await _matching_job(call)
    return _changed(call, await call.app.jobs.arun_now(job.id, version=version))


async def change_job(call: Call) -> Answer:
    """Change a waiting job; a new payload is checked by the task's schema where the server knows the task."""
    job, version = await _matching_job(call)
    given = msgspec.structs.asdict(call.body)
    changes = {name: value for name, value in given.items() if value is not UNSET}
    if "queue" in changes:
        call.caller.need_queue(changes["queue"], job.type)
    if "payload" in changes:
        changes["payload"] = await _edited(call, job.id, changes["payload"])
    return _changed(call, await call.app.jobs.achange(job.id, **changes, version=version))


async def visible_job(call: Call, *, fetch: bool = False) -> Job:
    """The job of the path; one outside the token's limits does not exist for it."""
    id_ = call.path["id"].lower()
    if not is_id(id_):
        raise JobNotFound(id_[:40])
    job = await call.app.jobs.aget(id_, fetch=fetch)
    if not call.caller.sees_job(job):
        raise JobNotFound(id_)
    return job


async def _matching_job(call: Call) -> tuple[Job, str | None]:
    """The job of the path, and the version that a change of it must find (If-Match)."""
    job = await visible_job(call)
    return job, call.expected(job.version, f"job {job.id}")


def _changed(call: Call, job: Job, status: int = 200) -> Answer:
    return Answer(_record(call.caller, job), status, {"etag": etag(job.version)})


def _record(caller: Caller, job: Job) -> JobRecord:
    shown = job if caller.sees_payloads else job.without_note()
    fields = {name: getattr(shown, name) for name in job.__struct_fields__}
    fields |= {name: caller.shown(getattr(job, name)) for name in ("payload", "result", "meta")}
    fields["trace"] = trace_of(job.meta)
    return JobRecord(**fields) if caller.sees_payloads else JobRecord(**{**fields, "logs": ()}, hidden=SECRET)


_PATH = "/jobs/{id}"
OPERATIONS = (
    Operation(
        method="GET",
        path="/jobs",
        scope=Scope.READ,
        handler=list_jobs,
        summary="List jobs, newest first",
        query=JobQuery,
        answers={200: JobList},
    ),
    Operation(
        method="GET",
        path=_PATH,
        scope=Scope.READ,
        handler=get_job,
        summary="Read a job",
        answers={200: JobRecord},
    ),
    Operation(
        method="GET",
        path=f"{_PATH}/why",
        scope=Scope.READ,
        handler=explain_job,
        summary="Why a job does not run",
        answers={200: Why},
    ),
    Operation(
        method="GET",
        path=f"{_PATH}/links",
        scope=Scope.READ,
        handler=list_links,
        summary="The chain of a job",
        answers={200: Links},
    ),
    Operation(
        method="GET",
        path=f"{_PATH}/payloads",
        scope=Scope.READ,
        handler=list_payloads,
        summary="Payloads that a job had before operators changed them",
        answers={200: PayloadList},
    ),
    Operation(
        method="DELETE",
        path=_PATH,
        scope=Scope.OPERATE,
        handler=cancel_job,
        summary="Cancel a job, or delete a finished one",
        query=DeleteQuery,
        answers={200: JobRecord, 202: JobRecord, 204: None},
        headers=("If-Match",),
    ),
    Operation(
        method="PATCH",
        path=_PATH,
        scope=Scope.OPERATE,
        handler=change_job,
        summary="Change a waiting job",
        body=JobPatch,
        answers={200: JobRecord},
        headers=("If-Match",),
    ),
    Operation(
        method="POST",
        path=f"{_PATH}/retry",
        scope=Scope.OPERATE,
        handler=retry_job,
        summary="Run a finished or failed job again",
        body=RetryRequest,
        optional_body=True,
        answers={200: JobRecord},
        headers=("If-Match",),
    ),
    Operation(
        method="POST",
        path=f"{_PATH}/run",
        scope=Scope.OPERATE,
        handler=run_job,
        summary="Run a scheduled or failed job now",
        answers={200: JobRecord},
        headers=("If-Match",),
    ),
)
