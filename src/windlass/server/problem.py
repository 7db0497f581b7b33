"""Errors as application/problem+json: one table from the error tree to statuses."""

from collections.abc import Mapping
from typing import Any

import msgspec

from windlass.client.verbs.actions import ActionNotFound
from windlass.client.verbs.flows import FlowNotFound
from windlass.client.verbs.tokens import TokenNotFound
from windlass.client.verbs.webhooks import WebhookNotFound
from windlass.errors import (
    BlobUnavailable,
    ChangedSince,
    EnqueueFailed,
    EnqueueUnknown,
    InvalidInput,
    JobNotFound,
    KeyConflict,
    LeaseLost,
    NotAllowedNow,
    PayloadTooLarge,
    QueueClosed,
    QueueNotFound,
    ScheduleNotFound,
    StoreUnavailable,
    UnknownTask,
    WindlassError,
)
from windlass.server.operation import MissingScope, NeedsAsgi, OutsideLimits, ReadOnly
from windlass.server.workers.rest_worker import WorkerNotFound

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
"""After which a client may repeat a call that met an unavailable store."""

_STATUSES: tuple[tuple[type[WindlassError], int], ...] = (
    (PayloadTooLarge, 413),
    (InvalidInput, 422),
    (UnknownTask, 422),
    (MissingScope, 403),
    (ReadOnly, 403),
    (OutsideLimits, 403),
    (NeedsAsgi, 501),
    (JobNotFound, 404),
    (QueueNotFound, 404),
    (ScheduleNotFound, 404),
    (TokenNotFound, 404),
    (ActionNotFound, 404),
    (FlowNotFound, 404),
    (WebhookNotFound, 404),
    (WorkerNotFound, 404),
    (ChangedSince, 412),
    (KeyConflict, 409),
    (LeaseLost, 409),
    (NotAllowedNow, 409),
    (QueueClosed, 409),
    (EnqueueFailed, 503),
    (EnqueueUnknown, 503),
    (BlobUnavailable, 503),
    (StoreUnavailable, 503),
)
"""The first that fits counts."""


_OUTAGES: tuple[tuple[type[WindlassError], str], ...] = (
    (EnqueueUnknown, "the store did not answer, and may have stored it: repeat the call with the same id or key"),
    (EnqueueFailed, "the store is not available, and nothing was stored"),
    (BlobUnavailable, "the blob store is not available"),
    (StoreUnavailable, "the store is not available"),
)
"""What a caller is answered in an outage; the errors themselves name servers and files."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error of the API (RFC 9457). `code` never changes, `title` is for people."""

    status: int
    code: str
    title: str
    field: str | None = None
    """The field of the request that is wrong."""
    limit: int | None = None
    """The maximum that the field exceeds."""
    job: str | None = None
    """The job that the error is about, such as the holder of a key."""
    maybe_done: bool = False
    """Whether the call may have taken effect: repeat it with the same ids or Idempotency-Key."""
    request: str = ""
    """The id of the request, which is in the server's log too."""


class Refused(Exception):
    """A refusal that no error of the tree describes: its status, code and title."""

    def __init__(
        self, status: int, code: str, title: str, *, limit: int | None = None, field: str | None = None
    ) -> None:
        super().__init__(title)
        self.problem = Problem(status=status, code=code, title=title, limit=limit, field=field)
        self.retry_after: int | None = None
        self.headers: Mapping[str, str] = {}
        """More headers of the answer, in lower case."""


def problem_of(error: WindlassError) -> Problem:
    """The problem that an error of the tree becomes."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return Problem(
        status=status,
        code=error.code,
        title=str(error),
        field="If-Match" if isinstance(error, ChangedSince) else getattr(error, "field", None),
        limit=getattr(error, "limit", None),
        job=_job_of(error),
        maybe_done=isinstance(error, EnqueueUnknown) or bool(getattr(error, "maybe_done", False)),
    )


def without_addresses(error: WindlassError, problem: Problem) -> Problem:
    """The problem for a caller over the network: an outage names no server, and points to the log."""
    said = next((said for kind, said in _OUTAGES if isinstance(error, kind)), None)
    if said is None:
        return problem
    return msgspec.structs.replace(problem, title=f"{said}; the server's log has the cause under this request's id")


def _job_of(error: Any) -> str | None:
    found = getattr(error, "job_id", None) or (error.id if isinstance(error, EnqueueUnknown) else None)
    return None if found is None else str(found)
