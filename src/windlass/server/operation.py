"""Operations: what the server can do, as data. The routes and the OpenAPI document are made from the same records."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.core.tokens import Rights, Scope
from windlass.errors import ChangedSince, WindlassError

T = TypeVar("T")

PREFIX = "/api/v1"
REQUEST_SECONDS = 60.0
"""No request takes longer, whatever the store does."""


class MissingScope(WindlassError):
    """The token does not have the scope that this needs."""

    code = "missing_scope"

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"this needs the scope {scope!s}")
        self.scope = scope


class OutsideLimits(WindlassError):
    """The token is limited to other queues or types."""

    code = "outside_limits"


class Caller(msgspec.Struct, frozen=True):
    """The authenticated caller of a request."""

    id: str
    name: str
    rights: Rights

    def need(self, scope: Scope) -> None:
        """Raise MissingScope unless it has this scope."""
        if not self.rights.allows(scope):
            raise MissingScope(scope)

    def need_queue(self, queue: str, type_: str | None = None) -> None:
        """Raise OutsideLimits unless it may act in this queue, with this type."""
        if not self.rights.covers(queue, type_):
            what = f"queue {queue!r}" if not self.rights.covers_queue(queue) else f"type {type_!r}"
            raise OutsideLimits(f"this token is limited, and {what} is not among what it may use")

    def need_whole_queue(self, queue: str) -> None:
        """Raise OutsideLimits unless it may act on all jobs of this queue."""
        self.need_queue(queue)
        if self.rights.types:
            raise OutsideLimits(f"this token is limited to types, and this concerns all jobs of queue {queue!r}")

    def sees_job(self, job: Job) -> bool:
        """Whether this job exists for it."""
        return self.rights.covers(job.queue, job.type)

    @property
    def sees_payloads(self) -> bool:
        """Whether payloads, results and log lines are shown to it."""
        return self.rights.allows(Scope.PAYLOADS)


async def _is_connected() -> bool:
    return True


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, authenticated and decoded."""

    app: App
    operation: "Operation"
    caller: Caller
    path: Mapping[str, str]
    query: Any
    body: Any
    text: bytes
    """The body as it was sent."""
    headers: Mapping[str, str]
    state: Any
    """What the server keeps between requests."""
    connected: Callable[[], Awaitable[bool]] = _is_connected
    """Whether the caller still waits for the answer; raises Refused if its token is not valid any more."""

    def expected(self, version: str, what: str) -> str | None:
        """The version that a change must find (If-Match), None: any; raises ChangedSince if it is not this one."""
        given = self.headers.get("if-match")
        if given is None or given.strip() == "*":
            return None
        if etag(version) not in [each.strip() for each in given.split(",")]:
            raise ChangedSince(what, version)
        return version


def etag(version: str) -> str:
    """A version as the header ETag has it."""
    return f'"{version}"'


class Answer(msgspec.Struct, frozen=True):
    """What is sent back: a value that becomes JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


Handler = Callable[[Call], Awaitable[Answer]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    scope: Scope
    handler: Handler
    summary: str
    query: type[msgspec.Struct] | None = None
    body: Any = None
    """The type that the body is decoded to; None: it has none."""
    optional_body: bool = False
    max_body: int = 1024 * 1024
    answers: Mapping[int, Any]
    """The type of the answer, by status."""
    headers: tuple[str, ...] = ()
    """Request headers that it reads."""

    @property
    def id(self) -> str:
        """Its name in the OpenAPI document."""
        return self.handler.__name__
