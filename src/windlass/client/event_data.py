"""The data of an event, for the event stream and webhooks."""

from datetime import datetime

import msgspec

from windlass.core.graphs.ids import is_flow
from windlass.core.jobs.job import JobError, Progress
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.store.records import JobEnd


class EventError(msgspec.Struct):
    """Why an attempt failed."""

    type: str
    message: str


class EventData(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The data of an event. A job's contents are at `GET /jobs/{id}`."""

    at: datetime
    job: str | None = None
    """In `flow.*` events the id of the flow."""
    type: str | None = None
    queue: str | None = None
    schedule: str | None = None
    """The changed schedule, or the schedule of the job."""
    status: Status | None = None
    attempt: int | None = None
    seconds: float | None = None
    """How long the last attempt ran."""
    tenant: str | None = None
    tags: tuple[str, ...] = ()
    reason: str | None = None
    error: EventError | None = None
    progress: Progress | None = None
    """Only of jobs that the client asked for; without its note."""
    version: str | None = None
    """The ETag of a changed queue or schedule; none if it was removed."""
    paused: bool = False
    closed: bool = False


def end_name(end: JobEnd) -> str:
    """The name of the event that a job's end is; a group or graph is a flow, and only that."""
    return f"{'flow' if is_flow(end.type, end.id) else 'job'}.{end.status}"


def end_data(end: JobEnd) -> EventData:
    """The data of an event about a job's end."""
    return EventData(
        at=to_datetime(end.at),
        job=end.id,
        type=end.type,
        queue=end.queue,
        status=end.status,
        attempt=end.attempt,
        seconds=None if end.started_at is None else (end.at - end.started_at) / SECOND,
        tenant=end.tenant,
        schedule=end.schedule,
        tags=end.tags,
        reason=end.reason,
        error=event_error(end.error),
    )


def event_error(error: JobError | None) -> EventError | None:
    """An error without its traceback, which may quote a handler's data."""
    return None if error is None else EventError(error.type, error.message)
